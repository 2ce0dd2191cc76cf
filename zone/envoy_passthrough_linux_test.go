package zone_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// passes is an application whose connections are redirected to its proxy, and servers outside the mesh.
type passes struct {
	*redirected
	w *world
	e *envoy
}

// capturePort is where connections are redirected to: the machine is a new one.
const capturePort = 15001

func newPasses(t *testing.T) *passes {
	t.Helper()
	r := newRedirected(t, capturePort, "203.0.113.10", "203.0.113.20", "169.254.169.254", "192.0.2.1")
	if r == nil {
		return nil
	}
	p := &passes{redirected: r, w: newWorld(t)}
	p.w.waitTrust()
	certificate := p.w.certificate("outside")
	for _, host := range []string{"203.0.113.10", "203.0.113.20", "169.254.169.254", "127.0.0.5"} {
		p.serve(host+":7000", func(c net.Conn) { _, _ = io.Copy(c, c) })
		p.serve(host+":8080", answer)
		p.serve(host+":8443", func(c net.Conn) {
			secured := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*certificate}})
			_, _ = io.Copy(secured, secured)
		})
		p.serve(host+":2525", func(c net.Conn) { _, _ = io.WriteString(c, "220 ready\r\n"); _, _ = io.Copy(io.Discard, c) })
	}
	p.w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: caller, labels: {app: caller}, networking: {address: 192.0.2.1, inbound: [
  {name: main, port: 80, servicePort: 9, protocol: http}], transparentProxying: {redirectPortOutbound: %d}}}`, capturePort))
	p.e = p.w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller", DNSAddress: "127.0.0.1:15053"})
	return p
}

// answer answers each request of a connection with 200.
func answer(c net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if strings.HasSuffix(string(buffer[:n]), "\r\n\r\n") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
}

// more returns by how much a counter grew.
func (p *passes) more(name, before string) int {
	p.t.Helper()
	was, err := strconv.Atoi(before)
	must(p.t, err)
	is, err := strconv.Atoi(p.counter(p.e, name))
	must(p.t, err)
	return is - was
}

// policy writes a MeshPassthrough.
func (p *passes) policy(name, conf string) {
	p.t.Helper()
	p.w.apply(fmt.Sprintf(`{type: MeshPassthrough, mesh: default, name: %s, spec: {default: %s}}`, name, conf))
}

// named reports whether the application reaches an echo by TLS with a server name.
func (p *passes) named(address, name string) bool {
	c, err := p.dial(address)
	if err != nil {
		return false
	}
	defer c.Close()
	return echoes(tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true}))
}

// speaks reports whether a server that speaks first is heard.
func (p *passes) speaks(address string) bool {
	c, err := p.dial(address)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	line := make([]byte, 3)
	_, err = io.ReadFull(c, line)
	return err == nil && string(line) == "220"
}

// TestPassthrough shows each mode and each match of a MeshPassthrough with connections that the kernel redirects.
func TestPassthrough(t *testing.T) {
	p := newPasses(t)
	if p == nil {
		return
	}
	const here, there = "203.0.113.10", "203.0.113.20"
	eventually(t, "all goes through without a policy", func() bool { return p.hears(here + ":7000") })
	if got := p.counter(p.e, "cluster.causeway_passthrough.upstream_cx_total"); got == "0" || got == "" {
		t.Fatalf("the proxy passed %q connections: they were not redirected", got)
	}
	if !p.speaks(here+":2525") || p.get(here+":8080", "example.com") != 200 || !p.named(here+":8443", "example.com") {
		t.Error("not all goes through")
	}
	for _, never := range []string{"127.0.0.5", "169.254.169.254", "127.0.0.1"} {
		if p.hears(never + ":7000") {
			t.Errorf("%s goes through", never)
		}
	}
	if p.hears(fmt.Sprintf("127.0.0.1:%d", capturePort)) {
		t.Error("the proxy goes to itself")
	}

	p.w.apply(`{type: Mesh, name: default, networking: {outbound: {passthrough: false}}}`)
	eventually(t, "the mesh lets nothing through", func() bool { return !p.hears(here + ":7000") })
	p.policy("b", "{passthroughMode: All}")
	eventually(t, "a policy does", func() bool { return p.hears(here + ":7000") })
	p.policy("b", "{passthroughMode: None}")
	eventually(t, "a policy does not", func() bool { return !p.hears(here + ":7000") })

	p.policy("b", "{passthroughMode: Matched, appendMatch: [{type: IP, value: 203.0.113.10, port: 7000}]}")
	eventually(t, "one address", func() bool { return p.hears(here + ":7000") })
	if p.hears(there+":7000") || p.get(here+":8080", "example.com") != 0 || p.speaks(here+":2525") {
		t.Error("one address lets others through")
	}
	open, err := p.dial(here + ":7000")
	must(t, err)
	defer open.Close()
	said(t, open, "before")
	modified, inPlace := p.counter(p.e, "listener_manager.listener_modified"), p.counter(p.e, updates)
	p.policy("a", "{appendMatch: [{type: CIDR, value: 203.0.113.16/28}]}")
	eventually(t, "two policies add up", func() bool { return p.hears(there+":7000") && p.hears(here+":7000") })
	if !p.speaks(there + ":2525") {
		t.Error("a server that speaks first is not heard")
	}
	said(t, open, "after")
	if changed := p.more("listener_manager.listener_modified", modified); changed == 0 || changed != p.more(updates, inPlace) {
		t.Errorf("of %d listeners that changed, %d did in place", changed, p.more(updates, inPlace))
	}
	p.policy("b", "{passthroughMode: Matched}")
	eventually(t, "a match that is gone", func() bool { return !p.hears(here+":7000") && p.hears(there+":7000") })
	eventually(t, "its connections end", func() bool { return !echoes(open) })
}

// TestPassthroughByName: what a connection says of itself decides: the server name of TLS, and the Host of HTTP.
func TestPassthroughByName(t *testing.T) {
	p := newPasses(t)
	if p == nil {
		return
	}
	const here = "203.0.113.10"
	p.policy("a", `{passthroughMode: Matched, appendMatch: [
  {type: Domain, value: "*.example.com", protocol: tls, port: 8443},
  {type: Domain, value: example.org, protocol: http},
  {type: Domain, value: "*.example.net", protocol: http, port: 8080},
  {type: IP, value: 203.0.113.20, protocol: http},
  {type: CIDR, value: 203.0.113.20/32, port: 8443, protocol: tls}]}`)
	eventually(t, "a server name", func() bool { return p.named(here+":8443", "a.example.com") })
	eventually(t, "a host", func() bool { return p.get(here+":8080", "example.org") == 200 })
	for name, tt := range map[string]struct{ got, want any }{
		"another server name":      {p.named(here+":8443", "a.example.org"), false},
		"the end alone":            {p.named(here+":8443", "example.com"), false},
		"no TLS":                   {p.hears(here + ":8443"), false},
		"an end of a host":         {p.get(here+":8080", "a.example.net"), 200},
		"a host in capitals":       {p.get(here+":8080", "EXAMPLE.org:8080"), 200},
		"another host":             {p.get(here+":8080", "example.com"), 403},
		"a longer host":            {p.get(here+":8080", "example.org.evil.net"), 403},
		"a host with a login":      {p.get(here+":8080", "evil.net@a.example.net"), 403},
		"HTTP to an address":       {p.get("203.0.113.20:8080", "anything"), 200},
		"no HTTP to the address":   {p.hears("203.0.113.20:7000"), false},
		"TLS to an address":        {p.named("203.0.113.20:8443", ""), true},
		"no TLS to the address":    {p.hears("203.0.113.20:8443"), false},
		"metadata by another name": {p.get("169.254.169.254:8080", "example.org"), 0},
	} {
		if fmt.Sprint(tt.got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
	open, err := p.dial(here + ":8443")
	must(t, err)
	secured := tls.Client(open, &tls.Config{ServerName: "a.example.com", InsecureSkipVerify: true})
	defer secured.Close()
	said(t, secured, "before")
	p.policy("b", `{appendMatch: [{type: Domain, value: late.example, protocol: http}, {type: IP, value: 203.0.113.10, port: 7000}]}`)
	eventually(t, "more domains", func() bool { return p.get(here+":8080", "late.example") == 200 && p.hears(here+":7000") })
	said(t, secured, "after")
}

// TestCapturedNames: with capture, a name stands for an address that is routed nowhere, and the proxy takes it.
func TestCapturedNames(t *testing.T) {
	p := newPasses(t)
	if p == nil {
		return
	}
	p.w.apply(`{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: 9443}, endpoints: [{address: 203.0.113.10, port: 7000}]}}
---
{type: HostnameGenerator, name: outside, spec: {selector: {meshExternalService: {}}, template: "{{ .DisplayName }}.extsvc.mesh.local"}}
---
{type: MeshPassthrough, mesh: default, name: none, spec: {default: {passthroughMode: None}}}`)
	var at string
	eventually(t, "the name", func() bool {
		at = resolveHere("127.0.0.1:15053", "bank.extsvc.mesh.local")
		return at != ""
	})
	if !strings.HasPrefix(at, "242.") {
		t.Errorf("bank.extsvc.mesh.local is %s", at)
	}
	eventually(t, "the service", func() bool { return p.hears(at + ":9443") })
	if p.hears(at+":9444") || p.hears("242.255.255.1:9443") {
		t.Error("an address that is no service's goes through")
	}
}

// resolveHere asks a server for a name, on the thread of the caller; empty without an answer.
func resolveHere(server, name string) string {
	c, err := net.Dial("udp", server)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	question := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, part := range strings.Split(name, ".") {
		question = append(append(question, byte(len(part))), part...)
	}
	if _, err := c.Write(append(question, 0, 0, 1, 0, 1)); err != nil {
		return ""
	}
	answer := make([]byte, 512)
	n, err := c.Read(answer)
	if err != nil || n < 4 || answer[7] == 0 { // no answers
		return ""
	}
	return net.IP(answer[n-4 : n]).String()
}
