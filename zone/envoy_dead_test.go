package zone_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// nothingUnasked switches off what proxies do against dead endpoints where no policy applies.
const nothingUnasked = `{type: MeshCircuitBreaker, mesh: default, name: none, spec: {to: [{targetRef: {kind: Mesh}, default: {outlierDetection: {disabled: true}}}]}}
---
{type: MeshRetry, mesh: default, name: none, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 0}}}]}}`

// TestDeadEndpointsCostNothing: a proxy that was killed while its Dataplane stays costs its callers no request, without
// a policy, and what an application answers is never asked twice. Policies switch both defaults off.
func TestDeadEndpointsCostNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("alive", "backend", answers("alive"))
	dead := w.handler("dead", "backend", answers("dead"))
	var failed atomic.Int64
	w.handler("failing", "failing", func(out http.ResponseWriter, _ *http.Request) {
		failed.Add(1)
		out.WriteHeader(http.StatusServiceUnavailable)
	})
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}", "{kind: MeshService, name: failing}")
	for _, name := range []string{"alive", "dead"} {
		eventually(t, name, func() bool { _, body := plain(ports[0], "/"); return strings.HasPrefix(body, name) })
	}
	eventually(t, "failing", func() bool { _, _ = plain(ports[1], "/"); return failed.Load() > 0 })
	before := failed.Load()
	if code, _ := plain(ports[1], "/"); code != http.StatusServiceUnavailable || failed.Load() != before+1 {
		t.Errorf("an application that fails: %d, asked %d times", code, failed.Load()-before)
	}
	dead.kill()
	lost := 0
	for range 100 {
		if code, _ := plain(ports[0], "/"); code != http.StatusOK {
			lost++
		}
	}
	if lost > 1 {
		t.Fatalf("%d of 100 calls failed", lost)
	}
	ejected := func(n string) func() bool {
		return func() bool {
			_, _ = plain(ports[0], "/")
			for name, v := range e.stats("outlier_detection.ejections_active") {
				if strings.Contains(name, "backend") {
					return v == n
				}
			}
			return n == ""
		}
	}
	eventually(t, "the dead one is left alone", ejected("1"))
	w.apply(nothingUnasked)
	eventually(t, "without the defaults, calls fail", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable })
	e.refusedNothing()
}

// TestDeadZoneCostsNothing: the only proxy of the caller's own zone is killed while its Dataplane stays, and another zone has
// healthy ones.
func TestDeadZoneCostsNothing(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.handler("far", "backend", answers("far"))
	near := two.handler("near", "backend", answers("near"))
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: in, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "in"})
	many := `{type: MeshMultiZoneService, mesh: default, name: many, spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: backend}}}, ports: [{port: 80, appProtocol: http}]}}`
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	two.allowAll()
	for _, w := range []*world{one, two} {
		r := w.resource(many)
		delete(r.Labels, resources.LabelZone)
		r.Labels[resources.LabelOrigin] = resources.OriginGlobal
		w.put(r)
	}
	ports, e := two.caller("caller", "{kind: MeshMultiZoneService, name: many, port: 80}")
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "near", func() bool {
		code, body := plain(ports[0], "/")
		return code == http.StatusOK && strings.HasPrefix(body, "near")
	})
	eventually(t, "the other zone's", func() bool {
		for name, n := range e.stats("membership_total") {
			if strings.Contains(name, "many") {
				return n == "2"
			}
		}
		return false
	})
	near.kill()
	lost := 0
	for range 100 {
		if code, body := plain(ports[0], "/"); code != http.StatusOK || !strings.HasPrefix(body, "far") {
			lost++
		}
	}
	if lost > 1 {
		t.Errorf("%d of 100 calls failed", lost)
	}
	e.refusedNothing()
}

// TestDeadIngressCostsNothing: of two ingresses of another zone one is killed while its ZoneIngress stays.
func TestDeadIngressCostsNothing(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.service("backend")
	var ingresses []*envoy
	for _, name := range []string{"first", "second"} {
		one.apply(fmt.Sprintf(`{type: ZoneIngress, name: %s, networking: {address: 127.0.0.1, port: %d}}`, name, freePort(t)))
		ingresses = append(ingresses, one.startEnvoy(zone.BootstrapConfig{ZoneIngress: name}))
	}
	ports, _ := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "reachable", ok(ports[0], "/"))
	ingresses[0].kill()
	lost := 0
	for range 100 {
		if code, _ := plain(ports[0], "/"); code != http.StatusOK {
			lost++
		}
	}
	if lost > 1 {
		t.Errorf("%d of 100 calls failed", lost)
	}
}

// TestDeadEgressCostsNothing: of two egresses one is killed while its Dataplane stays.
func TestDeadEgressCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := httptest.NewServer(answers("outside"))
	t.Cleanup(outside.Close)
	w.apply(`{type: Mesh, name: default, routing: {zoneEgress: true}}`)
	w.apply(fmt.Sprintf(`{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: 443, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}]}}`,
		outside.Listener.Addr().(*net.TCPAddr).Port))
	w.allowAll()
	var egresses []*envoy
	for _, name := range []string{"out-1", "out-2"} {
		w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {kuma.io/workload: egress}, networking: {address: 127.0.0.1, listeners: [{type: ZoneEgress, port: %d, name: way}]}}`,
			name, freePort(t)))
		egresses = append(egresses, w.startEnvoy(zone.BootstrapConfig{Egress: name}))
	}
	ports, e := w.caller("caller", "{kind: MeshExternalService, name: bank}")
	calls := func(n int) (lost int) {
		for range n {
			if code, _ := plain(ports[0], "/"); code != http.StatusOK {
				lost++
			}
		}
		return lost
	}
	eventually(t, "reachable by both", func() bool {
		if calls(20) > 0 {
			return false
		}
		for _, egress := range egresses {
			for _, n := range egress.stats("cluster.kri_extsvc.*upstream_cx_total") {
				if n == "0" {
					return false
				}
			}
		}
		return true
	})
	egresses[0].kill()
	if lost := calls(100); lost > 1 {
		t.Errorf("%d of 100 calls failed", lost)
	}
	e.refusedNothing()
}
