package zone_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// writeIdentity writes the same files as `causewayctl svid`.
func (w *world) writeIdentity(dataplane, dir string) {
	w.t.Helper()
	snap := w.store.Snapshot()
	dp := snap.Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: dataplane})
	svid, err := w.authorities.Issue(dp)
	must(w.t, err)
	eventually(w.t, "the zone's own trust", func() bool {
		snap = w.store.Snapshot()
		return len(identity.BundlesOf(snap, "default", resources.Home{Zone: "zone-1"}).PEM(svid.ID.TrustDomain())) > 0
	})
	bundles := identity.BundlesOf(snap, "default", resources.Home{Zone: "zone-1"})
	byDomain := map[string]json.RawMessage{}
	for _, domain := range bundles.Domains() {
		bundle, err := x509bundle.Parse(domain, bundles.PEM(domain))
		must(w.t, err)
		byDomain[domain.Name()], err = spiffebundle.FromX509Bundle(bundle).Marshal()
		must(w.t, err)
	}
	bundleMap, err := json.Marshal(map[string]any{"trust_domains": byDomain})
	must(w.t, err)
	for name, content := range map[string][]byte{
		"svid.pem": svid.CertificatePEM, "svid_key.pem": svid.KeyPEM,
		"own_bundle.pem": bundles.PEM(svid.ID.TrustDomain()), "bundle_map.json": bundleMap,
	} {
		must(w.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}

const allowAliceOrders = `{type: MeshTrafficPermission, mesh: default, name: orders, spec: {targetRef: {kind: Dataplane, labels: {app: orders}}, rules: [{default: {
  allow: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /shop.Orders}}]}}]}}`

// TestGRPCServerWithoutProxy: a grpc-go server reads its listener and its permissions, by method, from the zone.
// Changes reach it while its connections and calls continue.
func TestGRPCServerWithoutProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: orders, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", port))
	server := w.startGRPC("orders", fmt.Sprintf("127.0.0.1:%d", port), withBundleMaps)
	server.serving(1)
	alice, bob := grpcClient(t, w.certificate("alice"), port), grpcClient(t, w.certificate("bob"), port)
	if got := invoke(alice, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Fatalf("without a permission alice gets %s", got)
	}
	if err := echo(watch(t, alice)); grpcstatus.Code(err) != codes.PermissionDenied {
		t.Errorf("a stream gets %v", err)
	}

	w.apply(allowAliceOrders)
	eventually(t, "alice is allowed", func() bool { return invoke(alice, "/shop.Orders/Put") == codes.OK })
	for _, method := range []string{"/shop.OrdersAdmin/Put", "/grpc.health.v1.Health/Check", "/a/../shop.Orders/Put",
		"//shop.Orders/Put"} {
		if got := invoke(alice, method); got != codes.PermissionDenied {
			t.Errorf("%s: alice gets %s", method, got)
		}
	}
	if got := invoke(bob, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Errorf("bob gets %s", got)
	}

	// A call in progress, and the connection under it, outlive the change that ends alice's access.
	stream := watch(t, alice)
	must(t, echo(stream))
	w.apply(strings.ReplaceAll(allowAliceOrders, "workload/alice", "workload/bob"))
	eventually(t, "bob is allowed", func() bool { return invoke(bob, "/shop.Orders/Put") == codes.OK })
	if got := invoke(alice, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Errorf("alice still gets %s", got)
	}
	must(t, echo(stream))
	must(t, stream.CloseSend())
	if n := strings.Count(server.says(), "SERVING"); n != 1 {
		t.Errorf("the listener changed %d times", n)
	}
	if plaintext(port) {
		t.Error("plaintext is answered")
	}
}

// TestGRPCServerTrust: each trust domain's CA is trusted for that domain only, and new files take effect without a
// restart. Without bundle maps, only the server's own trust domain is trusted.
func TestGRPCServerTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, plain := freePort(t), freePort(t)
	for name, port := range map[string]int{"orders": port, "plain": plain} {
		w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: %s, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", name, port))
	}
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: anyone, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`)
	server := w.startGRPC("orders", fmt.Sprintf(":%d", port), withBundleMaps)
	server.serving(1)
	w.startGRPC("plain", fmt.Sprintf("127.0.0.1:%d", plain), "GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE=false").serving(1)
	other, own := newTestCA(t), w.certificate("alice")
	foreign := other.certificate("spiffe://other.mesh/workload/carol")
	knows := func(port int, certificate *tls.Certificate) codes.Code {
		return invoke(grpcClient(t, certificate, port), "/shop.Orders/Put")
	}
	for _, port := range []int{port, plain} {
		eventually(t, "the own trust domain is let in", func() bool { return knows(port, own) == codes.OK })
		if got := knows(port, foreign); got != codes.Unavailable {
			t.Errorf("a stranger gets %s", got)
		}
	}

	// The mesh now trusts another domain: causewayctl svid --watch writes the files again.
	before := servedBy(t, own, port)
	quoted, err := json.Marshal(other.pem())
	must(t, err)
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: other, spec: {trustDomain: other.mesh, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	w.writeIdentity("orders", server.dir)
	eventually(t, "the other trust domain is let in", func() bool { return knows(port, foreign) == codes.OK })
	eventually(t, "the new certificate is shown", func() bool { return servedBy(t, own, port) != before })
	for name, certificate := range map[string]*tls.Certificate{
		"a CA that speaks for another domain": other.certificate("spiffe://default.zone-1.mesh.local/workload/alice"),
		"two URI SANs": other.certificate("spiffe://other.mesh/workload/carol",
			"spiffe://other.mesh/workload/dave"),
		"no URI SAN":  other.certificate(),
		"no workload": other.certificate("spiffe://other.mesh/"),
	} {
		if got := knows(port, certificate); got == codes.OK {
			t.Errorf("%s: let in", name)
		}
	}
	if got := knows(plain, foreign); got != codes.Unavailable {
		t.Errorf("without bundle maps a stranger gets %s", got)
	}
}

// TestGRPCServerShowsItsSVIDToTheZone: off loopback, the zone authenticates itself with its certificate, and gRPC
// programs with their own.
func TestGRPCServerShowsItsSVIDToTheZone(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.stop()
	z.cfg.XDSAddress = fmt.Sprintf("0.0.0.0:%d", freePort(t))
	z.start()
	ports := []int{freePort(t), freePort(t)}
	for _, name := range []string{"orders", "other"} {
		z.apply("dataplanes/"+name, fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": %q, "networking": {"address": "127.0.0.1",
			"inbound": [{"name": "a", "port": %d, "protocol": "grpc"}, {"name": "b", "port": %d, "protocol": "grpc"}]}}`, name, ports[0], ports[1]))
	}
	_, xdsPort, _ := strings.Cut(z.cfg.XDSAddress, ":")
	cfg := zone.GRPCBootstrapConfig{
		Dataplane: "orders", XDSAddress: "grpcs://127.0.0.1:" + xdsPort,
		XDSCA: filepath.Join(z.cfg.DataDir, "tls", "ca.crt"), IdentityDir: t.TempDir(),
	}
	z.writeIdentity("other", cfg.IdentityDir)
	stranger := startGRPC(t, cfg, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	eventually(t, "another's identity is refused",
		func() bool { return strings.Contains(stranger.says(), "PermissionDenied") })
	cfg.IdentityDir = t.TempDir()
	z.writeIdentity("orders", cfg.IdentityDir)
	startGRPC(t, cfg, fmt.Sprintf("127.0.0.1:%d", ports[1])).serving(1)
	if strings.Contains(stranger.says(), " SERVING") {
		t.Error("it serves with another's identity")
	}
}

// writeIdentity writes the certificate and the key.
func (z *runningZone) writeIdentity(dataplane, dir string) {
	z.t.Helper()
	svid, _ := z.svid(dataplane)
	chain, key, err := svid.Marshal()
	must(z.t, err)
	must(z.t, os.WriteFile(filepath.Join(dir, "svid.pem"), chain, 0o600))
	must(z.t, os.WriteFile(filepath.Join(dir, "svid_key.pem"), key, 0o600))
}
