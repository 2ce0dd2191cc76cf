package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

const walkService = `{type: MeshService, mesh: default, name: backend, namespace: backend-ns, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}},
  ports: [{name: http-port, port: 80, targetPort: %d, appProtocol: http}]}}`

// newWalk starts a zone of a global with a workload, an ingress and a gateway, which have proxies. A link is the zone's
// only way to a global.
func newWalk(t *testing.T, m *mesh, link *cluster.Link) *walk {
	t.Helper()
	w := &walk{mesh: m}
	var err error
	w.zone, err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: link,
		Args: []string{"--access-log", "als"}})
	m.must(err)
	m.zones["zone-1"] = w.zone
	backend := m.workload(w.zone, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	ingress, err := m.StartIngress(t.Context(), w.zone, "ingress")
	m.must(err)
	port, err := porttest.Free()
	m.must(err)
	m.apply(w.zone, fmt.Sprintf(walkService, backend.Inbound("http-port").Port))
	m.apply(w.zone, fmt.Sprintf("{type: MeshGateway, mesh: default, name: edge, selectors: [{match: {kuma.io/service: edge}}], "+
		"conf: {listeners: [{port: %d, protocol: HTTP}]}}\n---\n", port)+
		"{type: Dataplane, mesh: default, name: edge-1, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}")
	gateway, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: w.zone, Mesh: "default", Dataplane: "edge-1"})
	m.must(err)
	w.away = []*cluster.Proxy{backend.Proxy, ingress, gateway}
	m.apply(m.global, operator(entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	m.apply(m.global, timeout("policy", "10s"))
	m.apply(w.zone, timeout("own", "10s"))
	m.arrives(m.global, "own")
	policy := filepath.Join(m.Dir(), "policy.yaml")
	m.must(os.WriteFile(policy, []byte(timeout("policy", "10s")), 0o600))
	w.words = strings.NewReplacer("{policy}", policy, "{caller}", spiffeID("zone-1", "frontend"),
		"{dataplane}", "kri_dp_default_zone-1_backend-ns_backend_",
		"{inbound}", "kri_dp_default_zone-1_backend-ns_backend_http-port",
		"{gateway}", "kri_mgw_default_zone-1__edge_", "{service}", "kri_msvc_default_zone-1_backend-ns_backend_")
	return w
}

// TestWalk asks everything of a global and its zone, in each state: all is well; proxies are away; the zone is away; the
// global is away; a store cannot be written; the zone's cannot, and changes wait for it; the zone holds removals; the
// global's store was restored from an older backup.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newMesh(t), nil)
	global, zone := w.global, w.zone
	both := func(state string) {
		t.Helper()
		w.holds(state, "global", global)
		w.holds(state, "zone", zone)
	}
	both("well")

	for _, p := range w.away {
		p.Kill()
	}
	both("proxies away")
	for _, p := range w.away {
		w.must(p.Start(t.Context()))
	}
	both("well")

	zone.Kill()
	w.holds("zone away", "global", global)
	global.Kill()
	w.must(global.Start(t.Context()))
	w.holds("zone not seen", "global", global)
	w.must(zone.Start(t.Context()))
	both("well")

	global.Kill()
	w.holds("global away", "zone", zone)
	w.must(global.Start(t.Context()))
	both("well")

	d := &disk{mesh: w.mesh, zone: zone}
	for _, s := range []*cluster.Server{global, zone} {
		d.limit(s, 4096)
		if d.put(s, "refused") == nil {
			t.Errorf("%s stores something on a full disk", s.Name())
		}
	}
	both("store full")
	for _, s := range []*cluster.Server{global, zone} {
		d.limit(s, unix.RLIM_INFINITY)
		d.ready(s)
	}
	both("well")

	d.limit(zone, 4096)
	w.apply(global, operator(entry("deny", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	both("zone full")
	d.limit(zone, unix.RLIM_INFINITY)
	w.apply(global, operator(entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	both("well")

	w.hold()
	both("held")
	_, err := w.CTL(t.Context(), zone, nil, "zone", "accept-deletes", "zone-1")
	w.must(err)
	both("well")

	w.rollBack()
	both("restored")
}

// hold removes so many permissions while the zone is away that it holds their removal.
func (w *walk) hold() {
	w.t.Helper()
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("{type: MeshTrafficPermission, mesh: default, name: many-%d, "+
			"spec: {default: {deny: [{spiffeId: {type: Exact, value: 'spiffe://a/b'}}]}}}", i))
	}
	documents := strings.Join(many, "\n---\n")
	w.apply(w.global, documents)
	w.eventually("the zone to have them", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, w.zone, "/meshes/default/meshtrafficpermissions")
		if err == nil && len(all) <= len(many) {
			err = errNotYet
		}
		return err
	})
	w.zone.Kill()
	w.remove(w.global, documents)
	w.global.Kill()
	w.must(w.global.Start(w.t.Context()))
	w.must(w.zone.Start(w.t.Context()))
}

// rollBack rolls the global's store back to a backup without a policy that the zone has.
func (w *walk) rollBack() {
	w.t.Helper()
	backup := filepath.Join(w.Dir(), "older.backup")
	w.remove(w.global, timeout("policy", "10s"))
	_, err := w.CTL(w.t.Context(), w.global, nil, "backup", "create", backup)
	w.must(err)
	w.apply(w.global, timeout("policy", "10s"))
	w.arrives(w.zone, "policy")
	w.must(w.global.Stop(w.t.Context()))
	lost := w.global.DataDir + ".lost"
	w.must(os.Rename(w.global.DataDir, lost))
	_, err = w.Output(w.t.Context(), nil, "causewayctl", "restore", backup, "--data-dir", w.global.DataDir)
	w.must(err)
	key, err := os.ReadFile(filepath.Join(lost, "secrets.key"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.global.DataDir, "secrets.key"), key, 0o600))
	w.must(w.global.Start(w.t.Context()))
	w.arrives(w.global, "own")
}
