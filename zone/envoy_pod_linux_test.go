package zone_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/capture"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/nameserver"
)

// TestCapturedProbes: in a machine with capture, as a pod is one, a node asks for probes in the clear, and the application
// answers wherever it listens for others. Nothing else does, and no name of a service needs the proxy's own answers.
func TestCapturedProbes(t *testing.T) {
	w := newWorld(t)
	backend, node := newHosts(t, w)
	if backend == nil {
		return
	}
	backend.listen(":8080", applicationUser, web)
	backend.listen(backend4+":9090", applicationUser, web) // on the machine's address only
	backend.listen("127.0.0.1:7070", applicationUser, web) // where a kubelet does not find it either
	w.apply(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 10.98.0.1, admin: {port: 15022}, inbound: [{port: 8080, name: main, protocol: http}],
  transparentProxying: {redirectPortInbound: 15006, redirectPortOutbound: 15001}}}
---
{type: Dataplane, mesh: default, name: caller, labels: {kuma.io/workload: caller}, networking: {address: 10.98.0.2, inbound: [{port: 1, name: none, protocol: tcp}],
  transparentProxying: {redirectPortInbound: 15006, redirectPortOutbound: 15001}}}
---
{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{port: 80, targetPort: main, appProtocol: http}]}}
---
{type: HostnameGenerator, name: names, spec: {selector: {meshService: {}}, template: "{{ .DisplayName }}.mesh"}}
---
{type: MeshTrafficPermission, mesh: default, name: callers, spec: {rules: [{default: {allow: [
  {spiffeID: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/caller"}}]}}]}}`)
	w.waitTrust()
	probe := func(path string, port uint32) injection.Probe {
		return injection.Probe{Path: path, Port: port, Timeout: 5}
	}
	var probes []injection.Probe
	for _, port := range []uint32{8080, 9090, 7070} {
		get, socket := probe(fmt.Sprintf("/http/%d", port), port), probe(fmt.Sprintf("/tcp/%d", port), port)
		get.HTTPGet, socket.TCPSocket = &injection.HTTPGet{Path: "/healthz"}, &struct{}{}
		probes = append(probes, get, socket)
	}
	settings := captured
	settings.ExcludeInboundPorts = []capture.Ports{{First: 15020, Last: 15020}}
	settings.ProofPort, settings.ProofTo = injection.ProofPort, 15021
	backend.capture(settings)
	backend.envoy(zone.BootstrapConfig{Dataplane: "backend", Probes: probes, ProbeAddress: "0.0.0.0:15020", ApplicationAddress: backend4,
		ReadyAddress: "[::]:15021"})
	getAt := func(host string, port int, path string) int {
		c, err := node.dial(0, net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return 0
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
		resp, err := client.Get("http://pod" + path)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	get := func(port int, path string) int { return getAt(backend4, port, path) }
	for _, host := range []string{backend4, backend6} { // as the kubelet asks for the start of a pod that a plugin captures
		eventually(t, "the proof at "+host, func() bool { return getAt(host, injection.ProofPort, "/ready") == 200 })
		if got := getAt(host, injection.ProofPort, "/config_dump"); got != 404 {
			t.Errorf("the port that proves capture shows more: %d", got)
		}
	}
	for path, want := range map[string]int{"/http/8080": 200, "/tcp/8080": 200, "/http/9090": 200, "/tcp/9090": 200, "/http/7070": 503, "/tcp/7070": 503} {
		eventually(t, fmt.Sprint(path, " to answer ", want), func() bool { return get(15020, path) == want })
	}
	for path, want := range map[string]int{"/": 404, "/healthz": 404, "/http/8080?x": 404} {
		if got := get(15020, path); got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	w.shows(node, backend4+":15022")
	for _, port := range []int{8080, 9090, 7070, 15006, 15022, 9901} {
		if got := get(port, "/healthz"); got != 0 {
			t.Errorf("port %d answers the node %d", port, got)
		}
	}

	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = nameserver.Serve(t.Context(), conn, nameserver.Config{Store: w.store, Home: w.home}) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at, err := newNamed(conn.LocalAddr().String()).resolver.LookupHost(ctx, "backend.mesh")
	must(t, err)
	node.capture(captured)
	node.envoy(zone.BootstrapConfig{Dataplane: "caller", ClusterDNS: true})
	eventually(t, fmt.Sprint("the service at ", at), func() bool { return node.asks(at[0]+":80") == 200 })
}

// shows requires that the proxy of a machine with capture shows its certificates to the zone, and only with the zone's key.
func (w *world) shows(from *host, address string) {
	w.t.Helper()
	raw, _, err := w.keeper.Get(w.t.Context(), "envoy-admin-key")
	must(w.t, err)
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	must(w.t, err)
	private := parsed.(*ecdsa.PrivateKey)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(w.t, err)
	get := func(certificate *tls.Certificate) int {
		c, err := from.dial(0, address)
		if err != nil {
			return 0
		}
		defer c.Close()
		secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(secured, "GET /certs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(secured), nil)
		if err != nil {
			return 0
		}
		return resp.StatusCode
	}
	eventually(w.t, "the proxy to show itself", func() bool { return get(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}) == 200 })
	if got := get(w.certificate("caller")); got != 0 {
		w.t.Errorf("the proxy shows itself to a workload: %d", got)
	}
}

// linkEnvoy puts Envoy where the proxy's user may run it: the repository may be in a home folder, which that user cannot enter.
func linkEnvoy(t *testing.T, at string) {
	t.Helper()
	path, err := filepath.EvalSymlinks(envoyBinary(t))
	must(t, err)
	if os.Link(path, at) == nil {
		return
	}
	binary, err := os.ReadFile(path) // the folder is on another file system
	must(t, err)
	must(t, os.WriteFile(at, binary, 0o755)) //nolint:gosec // another user runs it
}
