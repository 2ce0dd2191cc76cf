package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestGatewayKeys checks that a real Envoy presents certificates from a secret, a file and the resource itself, of the
// zone and of the global, that a renewed file is used, and that no server returns or keeps their keys in plaintext.
// apply and rollout status report what serves a MeshGateway, and what does not.
func TestGatewayKeys(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	dir := t.TempDir()
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global,
		Args: []string{"--external-secrets-dir", dir, "--log-level", "debug"}})
	m.must(err)
	m.zones["zone-1"] = zone
	m.must(zone.WaitMesh(t.Context(), "default"))
	k := newClientKey(t)
	bundle := k.certificate + k.key
	ports := make([]int, 4)
	for i := range ports {
		ports[i], err = porttest.Free()
		m.must(err)
	}
	file := filepath.Join(t.TempDir(), "pair.pem")
	m.must(os.WriteFile(file, []byte(bundle), 0o600))
	_, err = m.CTL(t.Context(), zone, nil, "secret", "set", "pair", "--from-file", file)
	m.must(err)
	m.must(os.Mkdir(filepath.Join(dir, "default"), 0o700))
	m.must(os.WriteFile(filepath.Join(dir, "default", "pair.pem"), []byte(bundle), 0o600))

	listener := func(port int, source string) string {
		return fmt.Sprintf("{port: %d, protocol: HTTPS, tls: {mode: TERMINATE, certificates: [%s]}}", port, source)
	}
	gateway := func(name string, listeners ...string) string {
		return fmt.Sprintf("{type: MeshGateway, mesh: default, name: %s, selectors: [{match: {kuma.io/service: %s}}], conf: {listeners: [%s]}}",
			name, name, strings.Join(listeners, ", "))
	}
	inline := listener(ports[2], fmt.Sprintf("{inlineString: %q}", bundle))
	edge := gateway("edge", listener(ports[0], "{secret: pair}"), listener(ports[1], "{file: pair.pem}"), inline)
	m.apply(zone, edge)
	alone, err := get(t.Context(), zone.Address("api"), "/meshes/default/meshgateways/edge")
	m.must(err)
	if !bytes.Contains(alone.body, []byte("selects no Dataplane in zone-1")) {
		t.Errorf("no condition of a gateway without a proxy: %s", alone.body)
	}
	ofGlobal := gateway("far", listener(ports[3], fmt.Sprintf("{inline: %s}", base64.StdEncoding.EncodeToString([]byte(bundle)))))
	m.apply(m.global, ofGlobal)
	for _, name := range []string{"edge", "far"} {
		m.apply(zone, fmt.Sprintf("{type: Dataplane, mesh: default, name: %[1]s-1, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: %[1]s}}}}", name))
	}
	var proxies []*cluster.Proxy
	for _, name := range []string{"edge-1", "far-1"} {
		proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: name})
		m.must(err)
		proxies = append(proxies, proxy)
	}
	for i, port := range ports {
		m.eventually(fmt.Sprint("listener ", i), func(ctx context.Context) error { return k.answersOn(ctx, port) })
	}
	m.eventually("the rollout", func(ctx context.Context) error { return enforcedByAll(ctx, zone, "edge", "") })
	k.gatewayLookedFor(m, []*cluster.Server{m.global, zone}, proxies)

	shown, err := m.CTL(t.Context(), m.global, nil, "get", "meshgateway", "far", "-o", "yaml")
	m.must(err)
	for _, again := range []string{string(shown), ofGlobal} {
		out, err := m.CTL(t.Context(), m.global, strings.NewReader(again), "apply", "-f", "-")
		m.must(err)
		if !bytes.Contains(out, []byte("unchanged")) {
			t.Errorf("%s\napplied again: %s", again, out)
		}
	}
	next := newClientKey(t)
	m.must(os.WriteFile(filepath.Join(dir, "default", "pair.pem"), []byte(next.certificate+next.key), 0o600))
	m.eventually("the renewed file", func(ctx context.Context) error { return next.answersOn(ctx, ports[1]) })
	_, err = m.CTL(t.Context(), zone, nil, "secret", "delete", "pair")
	m.must(err)
	m.eventually("no listener without its certificate", func(ctx context.Context) error {
		if k.answersOn(ctx, ports[0]) == nil {
			return errors.New("it still answers")
		}
		return enforcedByAll(ctx, zone, "edge", "conf.listeners[0].tls.certificates[0]: not served")
	})
	m.must(k.answersOn(t.Context(), ports[2]))
	answer, err := get(t.Context(), zone.Address("api"), "/meshes/default/meshgateways/edge")
	m.must(err)
	if !bytes.Contains(answer.body, []byte("NoCertificate")) {
		t.Errorf("no condition says so: %s", answer.body)
	}
	for _, p := range proxies {
		m.must(p.Stop(t.Context()))
	}
	for _, s := range []*cluster.Server{zone, m.global} {
		m.must(s.Stop(t.Context()))
		k.files(t, s)
	}
}

// answersOn checks that a port answers with this certificate.
func (k *clientKey) answersOn(ctx context.Context, port int) error {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second},
		Config: &tls.Config{InsecureSkipVerify: true, ServerName: "a.example"}}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	tlsConn, ok := conn.(*tls.Conn)
	if !ok {
		return fmt.Errorf("a %T", conn)
	}
	if _, err := tlsConn.ConnectionState().PeerCertificates[0].Verify(x509.VerifyOptions{Roots: k.pool,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return fmt.Errorf("another certificate: %w", err)
	}
	return nil
}

// enforcedByAll checks the zone's rollout status of a MeshGateway: that all proxies enforce it, or that one does not,
// and why.
func enforcedByAll(ctx context.Context, zone *cluster.Server, name, why string) error {
	answer, err := get(ctx, zone.Address("api"), "/_rollout/meshgateways/default/"+name)
	if err != nil {
		return err
	}
	var status struct {
		NotEnforced []string
		Proxies     struct{ Total, Enforced int }
	}
	if err := json.Unmarshal(answer.body, &status); err != nil {
		return fmt.Errorf("%w: %s", err, answer.body)
	}
	said := why == "" && len(status.NotEnforced) == 0 && status.Proxies.Enforced == 1 ||
		why != "" && strings.Contains(fmt.Sprint(status.NotEnforced), why) && status.Proxies.Enforced == 0
	if !said || status.Proxies.Total != 1 {
		return fmt.Errorf("%s", answer.body)
	}
	return nil
}

// gatewayLookedFor searches the answers of servers and of the proxies for the key.
func (k *clientKey) gatewayLookedFor(m *mesh, servers []*cluster.Server, proxies []*cluster.Proxy) {
	m.t.Helper()
	for _, s := range servers {
		for _, path := range []string{"/meshgateways", "/meshgateways?form=explicit", "/meshes/default/meshgateways/edge?format=k8s", "/_audit",
			"/meshes/default/dataplanes/edge-1/_policies", "/_rollout/meshgateways/default/edge"} {
			answer, err := get(m.t.Context(), s.Address("api"), path)
			m.must(err)
			k.absent(m.t, s.Name()+path, answer.body)
			if bytes.Contains(answer.body, []byte("causewaySealed")) {
				m.t.Errorf("%s%s shows the sealed form", s.Name(), path)
			}
		}
		backup := filepath.Join(m.t.TempDir(), "backup")
		_, err := m.CTL(m.t.Context(), s, nil, "backup", "create", backup)
		m.must(err)
		k.absent(m.t, "the backup of "+s.Name(), unpacked(m.t, backup))
		k.absent(m.t, "the log of "+s.Name(), []byte(s.Log()))
	}
	for _, p := range proxies {
		dump, err := get(m.t.Context(), strings.TrimPrefix(p.AdminURL(), "http://"), "/config_dump?include_eds")
		m.must(err)
		k.absent(m.t, "the configuration of the Envoy", dump.body)
	}
}

// TestGatewayThatEnvoyRefuses has a real Envoy refuse one listener of a MeshGateway, whose port another process has,
// and accept the other. No server reports the gateway as served, not even after the proxy has accepted something else.
func TestGatewayThatEnvoyRefuses(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	m.must(err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	m.must(err)
	free, err := porttest.Free()
	m.must(err)
	gateway := func(port string) string {
		return fmt.Sprintf("{type: MeshGateway, mesh: default, name: edge, selectors: [{match: {kuma.io/service: edge}}], conf: {listeners: [{port: %s, protocol: HTTP}, {port: %d, protocol: HTTP}]}}", port, free)
	}
	m.apply(m.global, gateway(port))
	status := []string{"rollout", "status", "kri_mgw_default___edge_"}
	m.says(m.global, 1, []string{"it selects no known proxy"}, status...)
	m.says(m.global, 0, []string{"warning", "gateways", "it selects no known proxy"}, "doctor")

	m.apply(zone, "{type: Dataplane, mesh: default, name: edge-1, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}")
	m.says(m.global, 1, []string{"enforced by 0 of 1 proxies", "unknown for 1: default/edge-1"}, status...)
	proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: "edge-1"})
	m.must(err)
	m.must(proxy.WaitListeners(t.Context(), free))
	refused := []string{"enforced by 0 of 1 proxies", "it refuses listeners (", port + ") since 20", "Address already in use"}
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 1, refused, status...)
		m.says(s, 1, []string{"gateways", "it refuses listeners ("}, "doctor")
	}
	m.apply(m.global, "{type: MeshTimeout, mesh: default, name: other, spec: {targetRef: {kind: Mesh}, to: [{targetRef: {kind: Mesh}, default: {http: {requestHeadersTimeout: 7s}}}]}}")
	m.says(zone, 1, refused, "rollout", "status", "kri_mt_default___other_")
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 1, refused, status...)
	}
	other, err := porttest.Free()
	m.must(err)
	m.apply(m.global, gateway(fmt.Sprint(other)))
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 0, []string{"enforced by 1 of 1 proxies"}, status...)
		m.says(s, 0, []string{"gateways", "1 of 1 are served by all of their proxies"}, "doctor")
	}
}
