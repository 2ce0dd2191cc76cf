package xds

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"testing"
)

// allocationsOfAll are the most allocations for each proxy of a change of each type for all proxies, from the store to the
// responses. Whatever proxies have in common is built once, and not counted here. The race detector adds up to two.
var allocationsOfAll = map[string]float64{
	"MeshTimeout in to": 34, "MeshRetry in to": 34, "MeshCircuitBreaker in to": 48, "MeshHealthCheck in to": 48,
	"MeshLoadBalancingStrategy in to": 48, "MeshHTTPRoute in to": 34, "MeshAccessLog in to": 70,
	"MeshTimeout in rules": 29, "MeshCircuitBreaker in rules": 39, "MeshRateLimit in rules": 30,
	"MeshFaultInjection in rules": 30, "MeshAccessLog in rules": 48, "MeshTLS in rules": 88,
	"MeshTrace in default": 60, "MeshMetric in default": 74, "MeshProxyPatch in default": 84,
}

func TestAChangeOfAllAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	const few, many = 20, 60
	counts := map[int]map[string]float64{few: {}, many: {}}
	for proxies, of := range counts {
		s := storeOfChanges(t, proxies)
		settle, end := askingProxies(t, testProxies(s), proxies)
		for i := range changedConfs {
			c, n := &changedConfs[i], 1
			c.put(t, s, n)
			settle()
			of[fmt.Sprintf("%s in %s", c.typ, c.list)] = testing.AllocsPerRun(10, func() {
				n++
				if c.put(t, s, n); settle() < proxies {
					t.Errorf("%s in %s: not all proxies were sent something", c.typ, c.list)
				}
			})
		}
		end()
	}
	for title, most := range allocationsOfAll {
		if per := math.Round((counts[many][title] - counts[few][title]) / (many - few)); per > most {
			t.Errorf("%s: %.0f allocations for each proxy, want at most %.0f", title, per, most)
		}
	}
}

// TestListenersShareTheirParts: proxies of other workloads and identities have the same parts of listeners and clusters,
// with their own names in them, after a change of each type.
func TestListenersShareTheirParts(t *testing.T) {
	t.Parallel()
	const proxies = 8
	s := storeOfChanges(t, proxies)
	x := testProxies(s)
	settle, end := askingProxies(t, x, proxies)
	defer end()
	for i := range changedConfs {
		changedConfs[i].put(t, s, 1)
		settle()
		var first *proxy
		for p := range x.meshes["default"].proxies {
			first = cmp.Or(first, p)
			one, other := &p.target.listeners[0].chains[0], &first.target.listeners[0].chains[0]
			if one.chainParts != other.chainParts || one.handshakes != other.handshakes {
				t.Errorf("%s in %s: %s has its own parts of a listener", changedConfs[i].typ, changedConfs[i].list, p.key.Name)
			}
			cluster, otherCluster := &p.state.Load().sending.clusters[0], &first.state.Load().sending.clusters[0]
			if cluster.part != otherCluster.part || cluster.socket != otherCluster.socket {
				t.Errorf("%s in %s: %s has its own parts of a cluster", changedConfs[i].typ, changedConfs[i].list, p.key.Name)
			}
			for q := range x.meshes["default"].proxies {
				for _, name := range []string{"identity_cert:default/" + q.key.Name, "\x12" + string(rune(len(q.key.Name))) + q.key.Name} {
					of := p.state.Load().receiving[kindListener].get("self_inbound_dp_http-port").delta.Resource.Value
					if bytes.Contains(of, []byte(name)) != (p == q) {
						t.Errorf("%s in %s: the listener of %s has %q: %t", changedConfs[i].typ, changedConfs[i].list, p.key.Name, name, p != q)
					}
				}
			}
		}
	}
}
