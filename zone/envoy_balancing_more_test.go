package zone_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// balanced is a caller of a service with three endpoints outside of the mesh.
type balanced struct {
	*world
	*envoy
	port int
}

func newBalanced(t *testing.T) *balanced {
	t.Helper()
	w := newWorld(t)
	w.apply(fmt.Sprintf(`{type: MeshExternalService, mesh: default, name: web, spec: {match: {port: 80, protocol: http}, endpoints: [
  {address: 127.0.0.1, port: %d}, {address: 127.0.0.1, port: %d}, {address: 127.0.0.1, port: %d}]}}`,
		behaving(t, "a"), behaving(t, "b"), behaving(t, "c")))
	ports, e := w.caller("caller", "{kind: MeshExternalService, name: web}")
	eventually(t, "the service", ok(ports[0], "/"))
	return &balanced{w, e, ports[0]}
}

func (b *balanced) balance(conf string) {
	b.apply("{type: MeshLoadBalancingStrategy, mesh: default, name: lb, spec: {to: [{targetRef: {kind: Mesh}, default: {" + conf + "}}]}}")
}

// asked returns who answers requests, which have a header that header returns.
func (b *balanced) asked(n int, header func(i int) string) []string {
	var who []string
	for i := range n {
		_, body := plain(b.port, "/", "x-user", header(i))
		who = append(who, body)
	}
	return who
}

// distinct returns how many different texts there are.
func distinct(texts []string) int {
	set := map[string]bool{}
	for _, text := range texts {
		set[text] = true
	}
	return len(set)
}

// TestEndpointsInTurn shows roundRobin of a MeshLoadBalancingStrategy: of three requests, each has another endpoint;
// and with Random, soon one has not.
func TestEndpointsInTurn(t *testing.T) {
	t.Parallel()
	b := newBalanced(t)
	inTurn := func() bool {
		who := b.asked(30, func(int) string { return "any" })
		for i := 0; i < len(who); i += 3 {
			if distinct(who[i:i+3]) != 3 {
				return false
			}
		}
		return true
	}
	b.balance("loadBalancer: {type: Random, random: {}}")
	eventually(t, "endpoints by chance", func() bool { return !inTurn() })
	b.balance("loadBalancer: {type: RoundRobin, roundRobin: {}}")
	eventually(t, "endpoints in turn", inTurn)
	b.refusedNothing()
}

// TestHashesOfFilterState shows filterState of hashPolicies, in each of the three places where a
// MeshLoadBalancingStrategy may have it. No filter of ours leaves a state: one of a MeshProxyPatch does.
func TestHashesOfFilterState(t *testing.T) {
	t.Parallel()
	b := newBalanced(t)
	b.apply(`{type: MeshProxyPatch, mesh: default, name: state, labels: {causeway.io/unguarded: "true"}, spec: {default: {appendModifications: [{httpFilter: {operation: AddFirst, match: {origin: outbound},
  value: "{name: state, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config, on_request_headers: [{object_key: user, factory_key: envoy.hashable_string,
    format_string: {text_format_source: {inline_string: '%REQ(x-user)%'}}}]}}"}}]}}}`)
	const by = "hashPolicies: [{type: FilterState, filterState: {key: user}}]"
	same := func(int) string { return "olga" }
	other := func(i int) string { return fmt.Sprint("user-", i) }
	for _, conf := range []string{
		"loadBalancer: {type: RingHash, ringHash: {minRingSize: 512, " + by + "}}",
		"loadBalancer: {type: Maglev, maglev: {tableSize: 503, " + by + "}}",
		"loadBalancer: {type: RingHash}, " + by,
	} {
		b.remove(resources.TypeMeshLoadBalancingStrategy, "lb")
		eventually(t, "one user at all endpoints", func() bool { return distinct(b.asked(9, same)) == 3 })
		b.balance(conf)
		eventually(t, "one user at one endpoint: "+conf, func() bool { return distinct(b.asked(12, same)) == 1 })
		if n := distinct(b.asked(40, other)); n != 3 {
			t.Errorf("%s: users are at %d endpoints, want 3", conf, n)
		}
	}
	b.refusedNothing()
}

// TestRingsOfOthersAreSmall: the owner of a service cannot have the proxies of its clients build large rings and tables.
// No write stores such a policy; a peer may send one. The operator may.
func TestRingsOfOthersAreSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: shop, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}]}}
---
{type: MeshService, mesh: default, namespace: shop, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}}`, freePort(t)))
	_, e := w.caller("caller", "{kind: MeshService, labels: {kuma.io/display-name: backend, k8s.kuma.io/namespace: shop}}")
	// ring returns how many entries the ring of the caller has.
	ring := func() int {
		for name, value := range e.stats("backend.*ring_hash_lb.size") {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("%s: %q", name, value)
			}
			return n
		}
		return 0
	}
	policy := func(owner, labels, conf string) {
		w.apply(fmt.Sprintf("{type: MeshLoadBalancingStrategy, mesh: default, name: lb%s%s, spec: {to: [{targetRef: {kind: MeshService, name: backend, namespace: shop}, default: {loadBalancer: {%s}}}]}}",
			owner, labels, conf))
	}
	policy("", "", "type: RingHash, ringHash: {minRingSize: 100000}")
	eventually(t, "the operator's ring", func() bool { return ring() >= 100_000 })
	w.remove(resources.TypeMeshLoadBalancingStrategy, "lb")
	const mine, producer = ", namespace: shop", ", labels: {kuma.io/policy-role: producer}"
	policy(mine, producer, "type: RingHash, ringHash: {minRingSize: 8388608}")
	eventually(t, "the owner's ring", func() bool { return ring() == resources.MostOfOthers })
	eventually(t, "the insight says so", func() bool {
		return strings.Contains(w.insightOf("caller"), "loadBalancer.ringHash.minRingSize")
	})
	policy(mine, producer, "type: Maglev, maglev: {tableSize: 5000011}")
	eventually(t, "the owner's table, and the word about it", func() bool {
		clusters := e.get("/config_dump?resource=dynamic_active_clusters")
		return strings.Contains(clusters, `"MAGLEV"`) && !strings.Contains(clusters, "5000011") &&
			strings.Contains(w.insightOf("caller"), "loadBalancer.maglev.tableSize")
	})
	e.refusedNothing()
}
