package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// TestEgress: where a mesh asks for it, proxies reach services outside it by way of an egress, which judges them, and
// in no other way.
func TestEgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "host "+r.Host) }))
	t.Cleanup(outside.Close)
	port := outside.Listener.Addr().(*net.TCPAddr).Port
	w.apply(`{type: Mesh, name: default, routing: {zoneEgress: true}}`)
	w.apply(fmt.Sprintf(`{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: 443, protocol: http}, endpoints: [{address: localhost, port: %d}]}}
---
{type: MeshExternalService, mesh: default, name: lines, spec: {match: {port: 9}, endpoints: [{address: 127.0.0.1, port: %d}]}}`,
		port, repeater(t)))
	ports, caller := w.caller("caller", "{kind: MeshExternalService, name: bank}", "{kind: MeshExternalService, name: lines}")
	eventually(t, "no egress", func() bool { code, _ := plain(ports[0], "/"); return code == 503 })
	eventually(t, "the insight says so", func() bool {
		return strings.Contains(w.insightOf("caller"), "routing.zoneEgress")
	})

	out := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: out, labels: {kuma.io/workload: egress}, networking: {address: 127.0.0.1, listeners: [{type: ZoneEgress, port: %d, name: way}]}}`, out))
	egress := w.startEnvoy(zone.BootstrapConfig{Egress: "out"})
	eventually(t, "the egress listens", func() bool { return strings.Contains(egress.get("/listeners"), fmt.Sprint(out)) })
	eventually(t, "nobody is allowed", func() bool {
		plain(ports[0], "/")
		denied := egress.stats("self_inbound_dp_way.rbac.denied$")
		return len(denied) == 1 && fmt.Sprint(denied) != "map[self_inbound_dp_way.rbac.denied:0]"
	})
	if code, _ := plain(ports[0], "/"); code != 503 {
		t.Errorf("without a permission: %d", code)
	}
	eventually(t, "the insight says so no longer", func() bool {
		return !strings.Contains(w.insightOf("caller"), "routing.zoneEgress")
	})
	allow := func(workload string) {
		w.apply(fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: out, spec: {targetRef: {kind: Dataplane, name: out, sectionName: way}, rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/%s"}}]}}]}}`, workload))
	}
	allow("caller")
	eventually(t, "allowed", func() bool { code, body := plain(ports[0], "/"); return code == 200 && body == "host localhost" })
	if strings.Contains(caller.get("/clusters"), fmt.Sprintf(":%d::", port)) {
		t.Error("the caller knows the service's own address")
	}
	open, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	must(t, err)
	defer open.Close()
	said(t, open, "by TCP")
	for name, n := range egress.stats("cluster.kri_extsvc.*upstream_cx_total") {
		if n == "0" {
			t.Errorf("%s: 0", name)
		}
	}

	allow("another")
	eventually(t, "no longer allowed", func() bool { code, _ := plain(ports[0], "/"); return code == 503 })
	eventually(t, "an open connection ends", func() bool { return !echoes(open) })
	allow("caller")
	eventually(t, "allowed again", func() bool { code, _ := plain(ports[0], "/"); return code == 200 })
	w.apply(`{type: Mesh, name: default}`)
	eventually(t, "directly", func() bool { return strings.Contains(caller.get("/clusters"), fmt.Sprintf(":%d::", port)) })
	if code, _ := plain(ports[0], "/"); code != 200 {
		t.Errorf("directly: %d", code)
	}
	w.apply(`{type: Mesh, name: default, routing: {zoneEgress: true}}`)
	eventually(t, "by the egress again", func() bool {
		code, _ := plain(ports[0], "/")
		return code == 200 && !strings.Contains(caller.get("/clusters"), fmt.Sprintf(":%d::", port))
	})
	caller.refusedNothing()
	egress.refusedNothing()
}

// insightOf returns the DataplaneInsight of a Dataplane, as it is stored.
func (w *world) insightOf(name string) string {
	r := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: name})
	if r == nil {
		return ""
	}
	return string(r.Spec.JSON())
}
