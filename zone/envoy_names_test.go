package zone_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// TestNamesOfServices: an application without outbounds and without capture of traffic resolves the names of services
// at its proxy, and reaches them there. Names that come, go and change touch no other listener, and no connection.
func TestNamesOfServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, outside := freePort(t), repeater(t)
	hits := w.service("backend")
	w.apply(fmt.Sprintf(`{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: %d, targetPort: main, appProtocol: http}]}}
---
{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: %d}, endpoints: [{address: 127.0.0.1, port: %d}]}}
---
{type: HostnameGenerator, name: local, spec: {selector: {meshService: {}}, template: "{{ .DisplayName }}.svc.mesh.local"}}
---
{type: HostnameGenerator, name: outside, spec: {selector: {meshExternalService: {}}, template: "{{ .DisplayName }}.extsvc.mesh.local"}}
---
{type: Dataplane, mesh: default, name: caller, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: 9, protocol: http}]}}`,
		port, port, outside, freePort(t)))
	w.apply(fmt.Sprintf(allowCaller, "zone-1"))
	asked := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller", DNSAddress: asked, DNSUpstreams: []string{nameServer(t,
		map[string]string{"elsewhere.example.": "192.0.2.77"})}})
	app := newNamed(asked)

	eventually(t, "a request by name", func() bool { return app.get(fmt.Sprintf("http://backend.svc.mesh.local:%d/x", port)) == 200 })
	if hits() == 0 {
		t.Error("the application saw nothing")
	}
	at, err := app.resolver.LookupHost(t.Context(), "backend.svc.mesh.local")
	if must(t, err); len(at) != 1 || !strings.HasPrefix(at[0], "127.") || at[0] == "127.0.0.1" {
		t.Errorf("backend.svc.mesh.local is %v", at)
	}
	for name, want := range map[string]string{"elsewhere.example": "192.0.2.77", "nobody.svc.mesh.local": "", "nobody.example": ""} {
		at, err := app.resolver.LookupHost(t.Context(), name)
		var missing *net.DNSError
		if want == "" && !(errors.As(err, &missing) && missing.IsNotFound) || want != "" && !slices.Equal(at, []string{want}) {
			t.Errorf("%s: %v, %v", name, at, err)
		}
	}

	open, err := app.dial(t.Context(), fmt.Sprintf("bank.extsvc.mesh.local:%d", port))
	must(t, err)
	defer open.Close()
	said(t, open, "before")
	before := e.listeners()
	w.apply(fmt.Sprintf(`{type: MeshService, mesh: default, name: other, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: %d, targetPort: main, appProtocol: http}]}}
---
{type: HostnameGenerator, name: outside, spec: {selector: {meshExternalService: {}}, template: "{{ .DisplayName }}.out.internal"}}
---
{type: MeshService, mesh: default, namespace: evil, name: backend, spec: {ports: [{name: http, port: %d, appProtocol: http}]}}`, port, port))
	eventually(t, "a new name", func() bool { return app.get(fmt.Sprintf("http://other.svc.mesh.local:%d/x", port)) == 200 })
	eventually(t, "a changed name", func() bool {
		_, was := app.resolver.LookupHost(t.Context(), "bank.extsvc.mesh.local")
		_, is := app.resolver.LookupHost(t.Context(), "bank.out.internal")
		return was != nil && is == nil
	})
	if code := app.get(fmt.Sprintf("http://backend.svc.mesh.local:%d/x", port)); code != 200 {
		t.Errorf("a service of the same name in another namespace: %d", code)
	}
	said(t, open, "after")
	after := e.listeners()
	for name, version := range before {
		if strings.HasPrefix(name, "listener ") && name != "listener causeway_dns" && after[name] != version {
			t.Errorf("%s: %s, then %s", name, version, after[name])
		}
	}
	w.apply(`{type: HostnameGenerator, name: local, spec: {selector: {meshService: {matchLabels: {no: one}}}, template: "{{ .DisplayName }}.svc.mesh.local"}}`)
	eventually(t, "a name that is gone", func() bool {
		_, err := app.resolver.LookupHost(t.Context(), "backend.svc.mesh.local")
		return err != nil && app.get(fmt.Sprintf("http://%s:%d/x", at[0], port)) == 0
	})
	said(t, open, "at the end")
	e.refusedNothing()
}

// TestNamesBySelector: of services of each kind, those with the labels of a generator have names by which a request
// arrives, and no others.
func TestNamesBySelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hits := w.service("backend")
	w.allowAll()
	outside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(outside.Close)
	port := freePort(t)
	for name, labels := range map[string]string{"named": "{names: given}", "other": "{names: none}"} {
		w.apply(fmt.Sprintf(`{type: MeshService, mesh: default, name: one-%[1]s, labels: %[2]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [
  {name: http, port: %[3]d, targetPort: main, appProtocol: http}]}}
---
{type: MeshExternalService, mesh: default, name: out-%[1]s, labels: %[2]s, spec: {match: {port: %[3]d, protocol: http}, endpoints: [{address: 127.0.0.1, port: %[4]d}]}}`,
			name, labels, port, outside.Listener.Addr().(*net.TCPAddr).Port))
		many := w.resource(fmt.Sprintf(`{type: MeshMultiZoneService, mesh: default, name: many-%s, labels: %s, spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: one-named}}}, ports: [
  {port: %d, appProtocol: http}]}}`, name, labels, port))
		delete(many.Labels, resources.LabelZone)
		many.Labels[resources.LabelOrigin] = resources.OriginGlobal // nobody else may write one
		w.put(many)
	}
	w.apply(`{type: HostnameGenerator, name: one, spec: {selector: {meshService: {matchLabels: {names: given}}}, template: "{{ .DisplayName }}.mesh"}}
---
{type: HostnameGenerator, name: out, spec: {selector: {meshExternalService: {matchLabels: {names: given}}}, template: "{{ .DisplayName }}.mesh"}}
---
{type: HostnameGenerator, name: many, spec: {selector: {meshMultiZoneService: {matchLabels: {names: given}}}, template: "{{ .DisplayName }}.mesh"}}
---
` + fmt.Sprintf(`{type: Dataplane, mesh: default, name: caller, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: 9, protocol: http}]}}`, freePort(t)))
	asked := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller", DNSAddress: asked, DNSUpstreams: []string{nameServer(t, nil)}})
	app := newNamed(asked)
	for _, kind := range []string{"one", "out", "many"} {
		before := hits()
		eventually(t, "a request to a service by its name: "+kind, func() bool {
			return app.get(fmt.Sprintf("http://%s-named.mesh:%d/x", kind, port)) == http.StatusOK
		})
		if arrived := hits() > before; arrived != (kind != "out") {
			t.Errorf("%s: the request arrived in the mesh: %t", kind, arrived)
		}
		var missing *net.DNSError
		if at, err := app.resolver.LookupHost(t.Context(), kind+"-other.mesh"); !errors.As(err, &missing) || !missing.IsNotFound {
			t.Errorf("%s-other.mesh: %v, %v", kind, at, err)
		}
	}
	e.refusedNothing()
}

// named is an application that resolves names at its proxy.
type named struct{ resolver *net.Resolver }

func newNamed(server string) *named {
	return &named{&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server)
	}}}
}

func (n *named) dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Resolver: n.resolver, Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
}

// get returns the status of an answer, 0 without one.
func (n *named) get(url string) int {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return n.dial(ctx, address) }}}
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// said sends a text on a connection to an echo, and requires it back.
func said(t *testing.T, c net.Conn, text string) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(c, text)
	must(t, err)
	back := make([]byte, len(text))
	_, err = io.ReadFull(c, back)
	if must(t, err); string(back) != text {
		t.Errorf("said %q, heard %q", text, back)
	}
}

// repeater runs a TCP server that sends back what it gets, until the test ends.
func repeater(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// nameServer runs a DNS server that knows some names, until the test ends.
func nameServer(t *testing.T, names map[string]string) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
			m.Additionals = nil
			at, known := names[q.Name.String()]
			switch {
			case !known:
				m.RCode = dnsmessage.RCodeNameError
			case q.Type == dnsmessage.TypeA:
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
					Body: &dnsmessage.AResource{A: [4]byte(net.ParseIP(at).To4())}}}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(raw, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
