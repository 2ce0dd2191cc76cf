package zone_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// tagged runs an application behind an inbound with tags, and without a MeshService.
func (w *world) tagged(name, protocol, tags string, application int) *envoy {
	w.t.Helper()
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %[1]s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %[2]d, servicePort: %[3]d, protocol: %[4]s, tags: {%[5]s}}]}}`, name, freePort(w.t), application, protocol, tags))
	return w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
}

// taggedHTTP is tagged for an application that answers with its name.
func (w *world) taggedHTTP(name, tags string) *envoy {
	w.t.Helper()
	srv := httptest.NewServer(answers(name))
	w.t.Cleanup(srv.Close)
	return w.tagged(name, "http", tags, srv.Listener.Addr().(*net.TCPAddr).Port)
}

// callerByTags runs a proxy with outbounds by tags.
func (w *world) callerByTags(outbounds ...string) ([]int, *envoy) {
	w.t.Helper()
	var ports []int
	var list []string
	for _, tags := range outbounds {
		ports = append(ports, freePort(w.t))
		list = append(list, fmt.Sprintf("{port: %d, tags: {%s}}", ports[len(ports)-1], tags))
	}
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: caller, labels: {app: caller}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}], outbound: [%s]}}`, freePort(w.t), strings.Join(list, ", ")))
	return ports, w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller"})
}

// callTagged allows what the tests call.
const callTagged = `{type: MeshTrafficPermission, mesh: default, name: callers, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/caller"}}, {spiffeId: {type: Exact, value: "spiffe://default.zone-2.mesh.local/workload/caller"}}]}}]}}`

// TestOutboundByTags: an outbound by tags leads to the Dataplanes whose inbound carries all of them, over HTTP and TCP,
// and follows them. Policies reach it by the spellings for tags, permissions by the caller's identity.
func TestOutboundByTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.taggedHTTP("one", "kuma.io/service: backend, version: v1")
	two := w.taggedHTTP("two", "kuma.io/service: backend, version: v2")
	greeter, _ := speaksFirst(t)
	w.tagged("mail", "tcp", `kuma.io/service: mail, causeway.io/server-first: "true"`, greeter)
	ports, e := w.callerByTags("kuma.io/service: backend", "kuma.io/service: backend, version: v2", "kuma.io/service: mail",
		"kuma.io/service: later")
	whole, v2, mail, later := ports[0], ports[1], ports[2], ports[3]
	eventually(t, "denied until a policy allows it", func() bool { code, _ := plain(whole, "/"); return code == 403 })
	w.apply(callTagged)
	eventually(t, "both versions", func() bool { return slices.Equal(versionsAt(whole, "/"), []string{"one", "two"}) })
	eventually(t, "one version", func() bool { return slices.Equal(versionsAt(v2, "/"), []string{"two"}) })
	eventually(t, "TCP", func() bool { return greets(mail) })
	// Nobody carries the tag: connections end, and the DataplaneInsight says why.
	if code, _ := plain(later, "/"); code != 0 {
		t.Errorf("nobody answers with %d", code)
	}
	w.hasProblem("caller", "networking.outbound[3]: no Dataplane carries the tags kuma.io/service=later on an inbound")
	w.taggedHTTP("three", "kuma.io/service: later")
	eventually(t, "somebody carries it", func() bool { return slices.Equal(versionsAt(later, "/"), []string{"three"}) })

	// Policies of to, by the spellings for tags.
	w.apply(`{type: MeshFaultInjection, mesh: default, name: slow, spec: {rules: [{default: {http: [{delay: {percentage: 100, value: 1s}}]}}]}}`)
	limit := `{type: MeshTimeout, mesh: default, name: limit, spec: {to: [{targetRef: %s, default: {http: {requestTimeout: 100ms}}}]}}`
	times := func(port int) bool { code, _ := plain(port, "/"); return code == 504 }
	for _, ref := range []string{"{kind: MeshService, name: backend}", "{kind: MeshSubset, tags: {kuma.io/service: backend}}"} {
		w.apply(fmt.Sprintf(limit, ref))
		eventually(t, "the limit by "+ref, func() bool { return times(whole) && times(v2) && !times(later) })
		w.remove(resources.TypeMeshTimeout, "limit")
		eventually(t, "no limit", func() bool { return !times(whole) && !times(v2) })
	}
	w.apply(fmt.Sprintf(limit, "{kind: MeshServiceSubset, name: backend, tags: {version: v2}}"))
	eventually(t, "the limit of a version", func() bool { return times(v2) && !times(whole) })
	w.remove(resources.TypeMeshTimeout, "limit")
	// By the MeshService of the same Dataplanes, whatever its name is.
	w.apply(`{type: MeshService, mesh: default, name: shop, spec: {selector: {dataplaneTags: {kuma.io/service: backend}}, ports: [{port: 80, targetPort: main, appProtocol: http}]}}`)
	w.apply(fmt.Sprintf(limit, "{kind: MeshService, name: shop}"))
	eventually(t, "the limit by the MeshService", func() bool { return times(whole) && !times(v2) })
	w.remove(resources.TypeMeshTimeout, "limit")
	w.remove(resources.TypeMeshFaultInjection, "slow")
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: canary, spec: {to: [{targetRef: {kind: MeshService, name: shop}, rules: [
  {matches: [{path: {type: PathPrefix, value: /v2}}], default: {backendRefs: [{kind: MeshServiceSubset, name: shop, tags: {version: v2}}]}}]}]}}`)
	eventually(t, "a route of the MeshService", func() bool { return slices.Equal(versionsAt(whole, "/v2"), []string{"two"}) })
	if got := versionsAt(whole, "/"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("beside the route: %s", got)
	}
	// A dead endpoint is not used.
	two.kill()
	lost := 0
	for range 50 {
		if code, _ := plain(whole, "/"); code != 200 {
			lost++
		}
	}
	if lost > 1 {
		t.Errorf("%d of 50 calls failed after one of two died", lost)
	}
	e.refusedNothing()
}

// greets reports whether the application behind a port speaks first, and echoes a line.
func greets(port int) bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "x\n"); err != nil {
		return false
	}
	r := bufio.NewReader(conn)
	first, _ := r.ReadString('\n')
	second, _ := r.ReadString('\n')
	return first == banner && second == "echo x\n"
}

// TestOutboundByTagsAcrossZones: Dataplanes of the caller's own zone come first. Then those of another zone follow,
// behind the MeshService whose Dataplanes carry the tags.
func TestOutboundByTagsAcrossZones(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.taggedHTTP("far", "kuma.io/service: backend, version: v1")
	one.apply(`{type: MeshService, mesh: default, name: shop, spec: {selector: {dataplaneTags: {kuma.io/service: backend}}, ports: [{port: 80, targetPort: main, appProtocol: http}]}}`)
	port := freePort(t)
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: in, networking: {address: 127.0.0.1, port: %d}}`, port))
	one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "in"})
	near := two.taggedHTTP("near", "kuma.io/service: backend")
	ports, e := two.callerByTags("kuma.io/service: backend", "kuma.io/service: backend, version: v1")
	one.apply(callTagged)
	two.apply(callTagged)
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "the own zone's", func() bool { return slices.Equal(versionsAt(ports[0], "/"), []string{"near"}) })
	near.kill()
	lost := 0
	for range 50 {
		if code, _ := plain(ports[0], "/"); code != 200 {
			lost++
		}
	}
	if lost > 1 {
		t.Errorf("%d of 50 calls failed after the own zone's died", lost)
	}
	if got := versionsAt(ports[0], "/"); !slices.Equal(got, []string{"far"}) {
		t.Errorf("then %s answers", got)
	}
	// The MeshService does not say the version of its Dataplanes.
	two.hasProblem("caller", "networking.outbound[1]: no Dataplane carries the tags kuma.io/service=backend,version=v1 on an inbound")
	one.apply(`{type: MeshService, mesh: default, name: shop-v1, spec: {selector: {dataplaneTags: {kuma.io/service: backend, version: v1}}, ports: [{port: 80, targetPort: main, appProtocol: http}]}}`)
	one.tell(two)
	eventually(t, "one that says it", func() bool { return slices.Equal(versionsAt(ports[1], "/"), []string{"far"}) })
	e.refusedNothing()
}

// TestOutboundByTagsThatAnIngressLists: an ingress of Kuma that lists tags, without a MeshService, is asked by Kuma's
// spelling of their server name; the caller believes only identities of that zone.
func TestOutboundByTagsThatAnIngressLists(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.taggedHTTP("far", "kuma.io/service: backend, version: v2")
	inbound := inboundPort(t, one, "far")
	one.apply(callTagged)
	ports, e := two.callerByTags("kuma.io/service: backend", "kuma.io/service: backend, version: v2", "kuma.io/service: backend, version: v3")
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	for zone, name := range map[string]string{"whole": "backend{mesh=default}", "version": "backend{mesh=default,version=v2}"} {
		r := two.resource(fmt.Sprintf(`{type: ZoneIngress, name: %s, networking: {address: 127.0.0.1, port: %d}, availableServices: [{mesh: default, tags: {kuma.io/service: backend, version: v2, kuma.io/protocol: http, kuma.io/zone: zone-1}}]}`,
			zone, onlyLeads(t, inbound, name)))
		r.Labels[resources.LabelZone], r.Labels[resources.LabelOrigin] = "zone-1", resources.OriginGlobal
		two.put(r)
		port := ports[map[string]int{"whole": 0, "version": 1}[zone]]
		eventually(t, "by "+name, func() bool { return slices.Equal(versionsAt(port, "/"), []string{"far"}) })
		two.remove(resources.TypeZoneIngress, zone)
	}
	two.hasProblem("caller", "networking.outbound[2]: no Dataplane carries the tags kuma.io/service=backend,version=v3 on an inbound")
	e.refusedNothing()
}

// inboundPort is the port of a Dataplane's inbound.
func inboundPort(t *testing.T, w *world, name string) int {
	t.Helper()
	dp := w.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name})
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	must(t, err)
	return int(spec.GetNetworking().GetInbound()[0].GetPort())
}
