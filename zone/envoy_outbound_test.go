package zone_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// tell copies to another zone the resources of this one that cross, as the sync does: under hashed names, with the
// labels of their home.
func (w *world) tell(o *world) {
	w.t.Helper()
	var batch store.Batch
	for _, t := range []resources.Type{resources.TypeMeshService, resources.TypeMeshTrust, resources.TypeZoneIngress,
		resources.TypeMeshTimeout, resources.TypeMeshHTTPRoute} {
		for r := range w.store.Snapshot().List(store.Query{Type: t}) {
			if r.Zone() != w.home.Zone {
				continue
			}
			c := r.Clone()
			c.Name, c.Namespace = hashing.Name(r.Mesh, r.DisplayName(), r.Zone(), r.HomeNamespace()), ""
			c.Labels[resources.LabelOrigin] = resources.OriginGlobal
			batch.Ops = append(batch.Ops, store.Op{Put: c})
		}
	}
	_, err := o.store.Apply(context.Background(), batch)
	must(w.t, err)
}

// waitTrust waits until the zone has published its own trust domain.
func (w *world) waitTrust() {
	w.t.Helper()
	eventually(w.t, "the zone's own trust", func() bool {
		for r := range w.store.Snapshot().List(store.Query{Type: resources.TypeMeshTrust}) {
			if r.Zone() == w.home.Zone {
				return true
			}
		}
		return false
	})
}

// put stores a resource unchanged.
func (w *world) put(r *resources.Resource) {
	w.t.Helper()
	_, err := w.store.Apply(w.t.Context(), store.Batch{Ops: []store.Op{{Put: r}}})
	must(w.t, err)
}

// plain returns what an application receives on its own outbound: status and body, with status 0 if the connection
// fails.
func plain(port int, path string, headers ...string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return 0, err.Error()
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b) + resp.Header.Get("Location")
}

// service runs an application with a proxy and a MeshService of its own.
func (w *world) service(name string) (hits func() int) {
	w.t.Helper()
	application, hits := application(w.t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %[1]s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %[2]d, servicePort: %[3]d, protocol: http}]}}
---
{type: MeshService, mesh: default, name: %[1]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[1]s}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}}`,
		name, freePort(w.t), application))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: name, SpireSocket: w.spire})
	return hits
}

// caller runs a proxy whose inbounds are never called, with outbounds to services by name.
func (w *world) caller(name string, outbounds ...string) ([]int, *envoy) {
	w.t.Helper()
	var ports []int
	var list []string
	for _, o := range outbounds {
		port := freePort(w.t)
		ports = append(ports, port)
		list = append(list, fmt.Sprintf("{port: %d, backendRef: %s}", port, o))
	}
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: %s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}], outbound: [%s]}}`, name, name, freePort(w.t), strings.Join(list, ", ")))
	return ports, w.startEnvoy(zone.BootstrapConfig{Dataplane: name, SpireSocket: w.spire})
}

const allowCaller = `{type: MeshTrafficPermission, mesh: default, name: caller, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.%s.mesh.local/workload/caller"}}]}}]}}`

func (e *envoy) refusedNothing() {
	e.t.Helper()
	for name, n := range e.counted("update_rejected") {
		if n != "0" {
			e.t.Errorf("%s: %s", name, n)
		}
	}
}

func TestOutboundReachesAService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hits := w.service("backend")
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "denied by default", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusForbidden })
	if hits() != 0 {
		t.Fatal("the application was reached without a permission")
	}
	w.apply(fmt.Sprintf(allowCaller, "zone-1"))
	eventually(t, "allowed", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })
	e.refusedNothing()
}

// TestCallAcrossZones: an application of zone-2 reaches a service of zone-1 through the ingress of zone-1, where
// permissions apply to the application's own identity.
func TestCallAcrossZones(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	hits := one.service("backend")
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	ingress := one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	ports, e := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}`)
	others, _ := two.caller("other", `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "caller allowed", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })
	eventually(t, "other denied", func() bool { code, _ := plain(others[0], "/"); return code == http.StatusForbidden })
	if hits() == 0 {
		t.Error("nobody reached the application")
	}
	ingress.refusedNothing()
	e.refusedNothing()
}
