package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLoadBalancing: a MeshLoadBalancingStrategy says which endpoint takes a request: in turn, by chance, or by what
// the request has.
func TestLoadBalancing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.handler(name, "backend", answers(name))
	}
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	ask := func(path string, headers ...string) string {
		code, body := plain(ports[0], path, headers...)
		if code != http.StatusOK {
			return fmt.Sprint(code)
		}
		return strings.Fields(body)[0]
	}
	// among counts who answers n requests that differ by what differs says.
	among := func(n int, request func(i int) string) map[string]int {
		got := map[string]int{}
		for i := range n {
			got[request(i)]++
		}
		return got
	}
	first := func(int) string { return ask("/") }
	eventually(t, "all three in turn", func() bool { return len(among(12, first)) == 3 })

	for _, tt := range []struct {
		name, conf, dump string
		// same is a request that one endpoint takes every time; varied ones differ in what is hashed.
		same   func() string
		varied func(i int) string
	}{
		{"least request", "loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 3}}", `"choice_count": 3`,
			nil, first},
		{"random", "loadBalancer: {type: Random}", `"lb_policy": "RANDOM"`, nil, first},
		{
			"ring hash by header", "loadBalancer: {type: RingHash, ringHash: {hashFunction: MurmurHash2, minRingSize: 64, maxRingSize: 1024, hashPolicies: [{type: Header, header: {name: x-user}}]}}", `"maximum_ring_size": "1024"`,
			func() string { return ask("/", "x-user", "olga") }, func(i int) string { return ask("/", "x-user", fmt.Sprint(i)) },
		},
		{
			"Maglev by query", "loadBalancer: {type: Maglev, maglev: {tableSize: 503}}, hashPolicies: [{type: QueryParameter, queryParameter: {name: user}}]", `"table_size": "503"`,
			func() string { return ask("/?user=olga") }, func(i int) string { return ask(fmt.Sprintf("/?user=%d", i)) },
		},
		{
			"the first that is terminal", "loadBalancer: {type: Maglev, maglev: {tableSize: 509}}, hashPolicies: [{type: Header, terminal: true, header: {name: x-user}}, {type: QueryParameter, queryParameter: {name: user}}]", `"table_size": "509"`,
			func() string { return ask("/?user=any", "x-user", "olga") },
			func(i int) string { return ask(fmt.Sprintf("/?user=%d", i)) },
		},
		{
			"a cookie", "loadBalancer: {type: RingHash}, hashPolicies: [{type: Cookie, cookie: {name: session}}]",
			`"lb_policy": "RING_HASH"`,
			func() string { return ask("/", "cookie", "session=olga") },
			func(i int) string { return ask("/", "cookie", fmt.Sprintf("session=%d", i)) },
		},
		{
			"the client's address", "loadBalancer: {type: Maglev, maglev: {tableSize: 521}}, hashPolicies: [{type: SourceIP}]", `"table_size": "521"`,
			func() string { return ask("/") }, nil,
		},
	} {
		w.apply("{type: MeshLoadBalancingStrategy, mesh: default, name: lb, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {" + tt.conf + "}}]}}")
		eventually(t, tt.name,
			func() bool { return strings.Contains(e.get("/config_dump?resource=dynamic_active_clusters"), tt.dump) })
		if tt.varied != nil {
			eventually(t, tt.name+" to reach all three", func() bool { return len(among(40, tt.varied)) == 3 })
		}
		if tt.same != nil {
			eventually(t, tt.name+" to keep to one",
				func() bool { return len(among(20, func(int) string { return tt.same() })) == 1 })
		}
	}
	w.apply(`{type: MeshLoadBalancingStrategy, mesh: default, name: lb, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {
  loadBalancer: {type: RingHash}, hashPolicies: [{type: Cookie, cookie: {name: made, ttl: 1h, path: /}}]}}]}}`)
	eventually(t, "a cookie for who has none", func() bool {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0]))
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return strings.HasPrefix(resp.Header.Get("Set-Cookie"), "made=")
	})
	e.refusedNothing()
}
