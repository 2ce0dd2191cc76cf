package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestProxyShowsItself reads a real Envoy's configuration, metrics, endpoints and certificates through its zone. Nobody
// else reads them: not a stranger, not a workload of the mesh; and the zone itself can change nothing.
func TestProxyShowsItself(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	port, err := porttest.Free()
	m.must(err)
	inbound, err := porttest.Free()
	m.must(err)
	dataplane := func(admin string) string {
		return fmt.Sprintf("{type: Dataplane, mesh: default, name: backend, namespace: shop, networking: {address: 127.0.0.1, %s"+
			"inbound: [{name: main, port: %d, servicePort: 9, tags: {kuma.io/protocol: http}}]}}", admin, inbound)
	}
	refused := func(s *cluster.Server, words string, args ...string) {
		t.Helper()
		m.eventually(fmt.Sprint(args, " to be refused: ", words), func(ctx context.Context) error {
			_, err := m.CTL(ctx, s, nil, append([]string{"proxy"}, args...)...)
			if err == nil || !strings.Contains(err.Error(), words) {
				return fmt.Errorf("not yet: %w", err)
			}
			return nil
		})
	}
	all := func(words string) {
		t.Helper()
		for _, part := range []string{"config", "stats", "clusters", "certs"} {
			refused(zone, words, part, "backend", "-n", "shop")
		}
	}
	m.apply(zone, dataplane(""))
	all("no proxy of this Dataplane is connected")
	proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Namespace: "shop", Dataplane: "backend"})
	m.must(err)
	m.must(proxy.WaitListeners(t.Context(), inbound))
	all("networking.admin.port")
	m.apply(zone, dataplane(fmt.Sprintf("admin: {port: %d}, ", inbound)))
	all("the port of an inbound")

	m.apply(zone, dataplane(fmt.Sprintf("admin: {port: %d}, ", port)))
	m.must(proxy.WaitListeners(t.Context(), inbound, port))
	m.says(zone, 0, []string{`"configs"`, "self_inbound_dp_main", "W3JlZGFjdGVkXQ=="}, "proxy", "config", "backend", "-n", "shop")
	m.says(zone, 0, []string{"server.live: 1"}, "proxy", "stats", "backend", "-n", "shop", "--match", "^server")
	m.says(zone, 0, []string{"::127.0.0.1:9::"}, "proxy", "clusters", "backend", "-n", "shop")
	m.says(zone, 0, []string{"certificates:", "spiffe://default.zone-1.mesh.local/"}, "proxy", "certs", "backend", "-n", "shop", "-o", "yaml")
	m.says(zone, 0, []string{"server.live"}, "proxy", "stats", "kri_dp_default_zone-1_shop_backend_")
	raw, err := m.CTL(t.Context(), zone, nil, "proxy", "stats", "backend", "-n", "shop", "-o", "json")
	m.must(err)
	if !json.Valid(raw) {
		t.Errorf("not JSON: %.200s", raw)
	}
	m.tellsEnvoysApart(zone, inbound, port)
	m.refusesStrangers(zone, fmt.Sprintf("127.0.0.1:%d", port))
	m.apply(zone, "{type: Dataplane, mesh: default, name: other, namespace: elsewhere, networking: {address: 127.0.0.1, "+
		"inbound: [{name: main, port: 1, tags: {kuma.io/protocol: http}}]}}")
	impostor, asked := m.impostor(zone)
	m.apply(zone, dataplane(fmt.Sprintf("admin: {port: %d}, ", impostor)))
	refused(zone, fmt.Sprintf("does not answer on its admin port 127.0.0.1:%d", impostor), "stats", "backend", "-n", "shop")
	if asked.Load() {
		t.Error("the zone asked another workload")
	}
	proxy.Kill()
	refused(zone, "is connected", "stats", "backend", "-n", "shop")
}

// tellsEnvoysApart starts a second Envoy of the Dataplane, on the same ports: an answer says that there are two, and for how
// long the one that answers has run.
func (m *truth) tellsEnvoysApart(zone *cluster.Server, ports ...int) {
	m.t.Helper()
	says := func(what string, right func(said string) bool) {
		m.t.Helper()
		m.eventually(what, func(ctx context.Context) error {
			said, err := m.Said(ctx, zone, "proxy", "stats", "backend", "-n", "shop", "--match", "^server.live")
			if err == nil && !right(said) {
				err = fmt.Errorf("it says %s", said)
			}
			return err
		})
	}
	says("no word of several Envoys", func(said string) bool { return !strings.Contains(said, "streams") })
	other, err := m.StartProxy(m.t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Namespace: "shop", Dataplane: "backend"})
	m.must(err)
	m.must(other.WaitListeners(m.t.Context(), ports...))
	says("two Envoys", func(said string) bool {
		return strings.Contains(said, "the Envoys of this Dataplane have 2 streams to the zone") &&
			strings.Contains(said, "the one that answered has run for ")
	})
	other.Kill()
	says("one Envoy", func(said string) bool { return !strings.Contains(said, "streams") })
}

// impostor answers everything as another workload of the mesh would, and reports whether it was asked anything.
func (m *truth) impostor(zone *cluster.Server) (port int, asked *atomic.Bool) {
	m.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	m.must(err)
	asked = &atomic.Bool{}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{m.svid(zone, "other", "elsewhere")}, ClientAuth: tls.RequireAnyClientCert}}
	var served sync.WaitGroup
	served.Go(func() { _ = s.ServeTLS(listener, "", "") })
	m.t.Cleanup(func() {
		_ = s.Close()
		served.Wait()
	})
	return listener.Addr().(*net.TCPAddr).Port, asked
}

// svid returns the identity of a Dataplane, as its owner fetches it.
func (m *truth) svid(zone *cluster.Server, name, namespace string) tls.Certificate {
	m.t.Helper()
	folder := filepath.Join(m.Dir(), "svid-"+name)
	_, err := m.CTL(m.t.Context(), zone, nil, "svid", name, "-n", namespace, "--out-dir", folder)
	m.must(err)
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "svid.pem"), filepath.Join(folder, "svid_key.pem"))
	m.must(err)
	return pair
}

// refusesStrangers checks that the admin listener answers neither a client without a certificate nor a workload of the
// mesh.
func (m *truth) refusesStrangers(zone *cluster.Server, address string) {
	m.t.Helper()
	workload := m.svid(zone, "backend", "shop")
	for name, certificates := range map[string][]tls.Certificate{"nobody": nil, "a workload": {workload}} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			Certificates: certificates, InsecureSkipVerify: true}}} //nolint:gosec // a stranger verifies nothing
		for _, path := range []string{"/stats", "/config_dump", "/certs"} {
			if answer, err := client.Get("https://" + address + path); err == nil {
				_ = answer.Body.Close()
				m.t.Errorf("%s reads %s: %s", name, path, answer.Status)
			}
		}
	}
	plain, err := net.Dial("tcp", address)
	m.must(err)
	defer plain.Close()
	_, _ = plain.Write([]byte("GET /stats HTTP/1.1\r\nHost: x\r\n\r\n"))
	answer := make([]byte, 64)
	if n, _ := plain.Read(answer); strings.HasPrefix(string(answer[:n]), "HTTP/") {
		m.t.Errorf("plaintext is answered: %s", answer[:n])
	}
}
