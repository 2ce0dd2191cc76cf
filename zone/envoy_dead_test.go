package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

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
	w.apply(`{type: MeshCircuitBreaker, mesh: default, name: none, spec: {to: [{targetRef: {kind: Mesh}, default: {outlierDetection: {disabled: true}}}]}}
---
{type: MeshRetry, mesh: default, name: none, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 0}}}]}}`)
	eventually(t, "without the defaults, calls fail", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable })
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
