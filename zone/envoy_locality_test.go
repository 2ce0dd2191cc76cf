package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// located is a caller in zone-2 of a service of two zones: far is in zone-1, behind an address that two ingresses share, near
// and next are in its own zone, and near is on the caller's node.
type located struct {
	*world
	ingress, caller *envoy
	port            int
	// sick makes near fail its health checks.
	sick atomic.Bool
}

func newLocated(t *testing.T) *located {
	t.Helper()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	l := &located{world: two}
	one.handler("far", "backend", answers("far"))
	two.handler("near", "backend", func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && l.sick.Load() {
			out.WriteHeader(http.StatusInternalServerError)
			return
		}
		answers("near")(out, r)
	})
	two.handler("next", "backend", answers("next"))
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	two.allowAll()
	many := `{type: MeshMultiZoneService, mesh: default, name: many, spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: backend}}}, ports: [{port: 80, appProtocol: http}]}}`
	for _, w := range []*world{one, two} {
		r := w.resource(many)
		delete(r.Labels, resources.LabelZone)
		r.Labels[resources.LabelOrigin] = resources.OriginGlobal
		w.put(r)
	}
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}
---
{type: ZoneIngress, name: elsewhere, networking: {address: 127.0.0.2, port: 1, advertisedAddress: 127.0.0.1, advertisedPort: %[1]d}}`,
		freePort(t)))
	l.ingress = one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	ports, e := two.caller("caller", "{kind: MeshMultiZoneService, name: many, port: 80}")
	l.port, l.caller = ports[0], e
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	for name, node := range map[string]string{"caller": "n1", "near": "n1", "next": "n2"} {
		two.changeDataplane(name, func(r *resources.Resource) { r.Labels["node"] = node })
	}
	eventually(t, "the own zone, in turn", func() bool { got := l.among(20); return got["near"] == 10 && got["next"] == 10 })
	return l
}

// among counts who answers so many requests.
func (l *located) among(n int) map[string]int {
	got := map[string]int{}
	for range n {
		code, body := plain(l.port, "/")
		if code != http.StatusOK {
			body = fmt.Sprint(code)
		}
		got[strings.Fields(body)[0]]++
	}
	return got
}

// prefer writes a localityAwareness.
func (l *located) prefer(conf string) {
	l.apply("{type: MeshLoadBalancingStrategy, mesh: default, name: lb, spec: {to: [{targetRef: {kind: MeshMultiZoneService, name: many}, default: {localityAwareness: " + conf + "}}]}}")
}

// TestLocalityAwareness: of a service of two zones, endpoints that share a label with the caller get nine tenths, or
// their weight; other zones answer as the policy says, alike, not at all, or when nobody of the own zone is left.
func TestLocalityAwareness(t *testing.T) {
	t.Parallel()
	l := newLocated(t)
	l.prefer("{disabled: true}")
	eventually(t, "all zones alike", func() bool { got := l.among(30); return got["near"] == 10 && got["next"] == 10 && got["far"] == 10 })
	l.prefer("{localZone: {affinityTags: [{key: node}]}}")
	eventually(t, "nine tenths on the same node", func() bool {
		got := l.among(100)
		return got["near"] > 75 && got["next"] > 0 && got["near"]+got["next"] == 100
	})
	l.prefer("{localZone: {affinityTags: [{key: node, weight: 1}]}}")
	eventually(t, "half on the same node, by its weight", func() bool {
		got := l.among(100)
		return got["near"] > 40 && got["near"] < 60 && got["near"]+got["next"] == 100
	})
	gone := func(names ...string) {
		for _, name := range names {
			l.changeDataplane(name, func(r *resources.Resource) {
				spec, err := resources.NewSpec(resources.TypeDataplane,
					[]byte(strings.Replace(string(r.Spec.JSON()), `"name":"main"`, `"name":"main","state":"NotReady"`, 1)))
				must(t, err)
				r.Spec = spec
			})
		}
	}
	gone("near", "next")
	eventually(t, "nobody: the own zone is left by nobody", func() bool { return l.among(5)["503"] == 5 })
	l.prefer("{crossZone: {failover: [{from: {zones: [zone-2]}, to: {type: Only, zones: [zone-1]}}]}}")
	eventually(t, "the other zone", func() bool { return l.among(5)["far"] == 5 })
	l.prefer("{crossZone: {failover: [{to: {type: AnyExcept, zones: [zone-1]}}]}}")
	eventually(t, "nobody: the other zone is excepted", func() bool { return l.among(5)["503"] == 5 })
	l.ingress.refusedNothing()
	l.caller.refusedNothing()
}

// TestFailoverThreshold: while one of two endpoints of the own zone fails its checks, another zone gets nothing with a
// threshold of 50 percent, and half of the requests with one of 100.
func TestFailoverThreshold(t *testing.T) {
	t.Parallel()
	l := newLocated(t)
	const failover = "failover: [{to: {type: Any}}]"
	l.apply(`{type: MeshHealthCheck, mesh: default, name: health, spec: {to: [{targetRef: {kind: Mesh}, default: {
  interval: 100ms, timeout: 5s, unhealthyThreshold: 1, healthyThreshold: 1, noTrafficInterval: 100ms, http: {path: /healthz}}}]}}`)
	l.prefer("{crossZone: {" + failover + ", failoverThreshold: {percentage: 100}}}")
	eventually(t, "both of the own zone", func() bool { got := l.among(40); return got["near"] == 20 && got["next"] == 20 })
	l.sick.Store(true)
	eventually(t, "half of the requests in the other zone", func() bool {
		got := l.among(100)
		return got["far"] > 30 && got["far"] < 70 && got["far"]+got["next"] == 100
	})
	l.prefer("{crossZone: {" + failover + ", failoverThreshold: {percentage: 50}}}")
	eventually(t, "none in the other zone", func() bool { return l.among(40)["next"] == 40 })
	l.caller.refusedNothing()
}

// changeDataplane edits a Dataplane of the world's zone.
func (w *world) changeDataplane(name string, edit func(*resources.Resource)) {
	w.t.Helper()
	next := w.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}).Clone()
	edit(next)
	w.put(next)
}
