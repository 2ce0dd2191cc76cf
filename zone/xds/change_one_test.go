package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// confOf returns the changed conf of a type in a list.
func confOf(t *testing.T, typ resources.Type, list string) *changedConf {
	t.Helper()
	i := slices.IndexFunc(changedConfs, func(c changedConf) bool { return c.typ == typ && c.list == list })
	if i < 0 {
		t.Fatalf("no conf of %s in %s", typ, list)
	}
	return &changedConfs[i]
}

func (c *changeOfOne) proxy() *proxy { return c.stream.s.proxy }

// allocationsOfOne are the most allocations of a change of each type for one proxy, from the store to the response. A
// change of one half of a policy, or of one type, leaves what depends on the others. The race detector adds up to four.
var allocationsOfOne = map[string]float64{
	"MeshTimeout in to": 735, "MeshRetry in to": 680, "MeshCircuitBreaker in to": 720, "MeshHealthCheck in to": 742,
	"MeshLoadBalancingStrategy in to": 750, "MeshHTTPRoute in to": 697, "MeshAccessLog in to": 518,
	"MeshTimeout in rules": 512, "MeshCircuitBreaker in rules": 335, "MeshRateLimit in rules": 611,
	"MeshFaultInjection in rules": 519, "MeshAccessLog in rules": 502, "MeshTLS in rules": 362,
	"MeshTrace in default": 420, "MeshMetric in default": 386, "MeshProxyPatch in default": 427,
}

func TestAChangeOfOneAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	one := newChangeOfOne(t, 20)
	for i := range changedConfs {
		c, n := &changedConfs[i], 1
		title := fmt.Sprintf("%s in %s", c.typ, c.list)
		per := testing.AllocsPerRun(20, func() {
			n++
			if one.change(t, c, n) == 0 {
				t.Errorf("%s: nothing was sent", title)
			}
		})
		if most := allocationsOfOne[title]; per > most {
			t.Errorf("%s: %.0f allocations for a change, want at most %.0f", title, per, most)
		}
	}
}

// TestAHalfOfAPolicyChangesThatHalf: a policy for incoming traffic rebuilds nothing that a proxy sends, and one for
// outgoing traffic nothing that it receives.
func TestAHalfOfAPolicyChangesThatHalf(t *testing.T) {
	t.Parallel()
	one := newChangeOfOne(t, 3)
	p := one.proxy()
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshCircuitBreaker} {
		plan := p.state.Load().sending.plan
		if one.change(t, confOf(t, typ, "rules"), 2) == 0 || p.state.Load().sending.plan != plan {
			t.Errorf("%s in rules: sent nothing, or has another plan", typ)
		}
	}
	for _, c := range []*changedConf{confOf(t, resources.TypeMeshAccessLog, "rules"), confOf(t, resources.TypeMeshCircuitBreaker, "rules"),
		confOf(t, resources.TypeMeshMetric, "default"), confOf(t, resources.TypeMeshProxyPatch, "default")} {
		sending := p.state.Load().sending
		if one.change(t, c, 4) == 0 || p.state.Load().sending != sending {
			t.Errorf("%s in %s: sent nothing, or built what the proxy sends", c.typ, c.list)
		}
	}
	target := p.target
	if one.change(t, confOf(t, resources.TypeMeshAccessLog, "to"), 2) == 0 || p.target != target {
		t.Error("MeshAccessLog in to: sent nothing, or applied the policies for inbounds again")
	}
	logged := p.target.inbounds[0].logged
	if one.change(t, confOf(t, resources.TypeMeshTrace, "default"), 2); p.target == target || p.target.inbounds[0].logged != logged {
		t.Error("MeshTrace: not applied, or built the logs of an inbound that only a policy for outbounds could have changed")
	}
	// A policy that gets the other half has it.
	c := confOf(t, resources.TypeMeshTimeout, "to")
	c.putFor(t, one.store, "bench-rules-dp-1", `{"kind": "Dataplane", "labels": {"proxy": "dp-1"}}`, 77)
	plan := p.state.Load().sending.plan
	if one.x.catchUp(); one.stream.take(t) == 0 || p.state.Load().sending.plan == plan {
		t.Error("a MeshTimeout in rules that becomes one in to has no effect")
	}
}

// TestFilesOfOutboundsStayNamed: a change of the logs of inbounds makes a proxy try all files once more, those of outbounds
// among them, and what it says of these is understood without another listener.
func TestFilesOfOutboundsStayNamed(t *testing.T) {
	t.Parallel()
	one := newChangeOfOne(t, 3)
	p, logs := one.proxy(), changedConf{typ: resources.TypeMeshAccessLog, list: "to", conf: func(n int) string {
		return fmt.Sprintf(`{"backends": [{"type": "File", "file": {"path": "/var/log/out-%d"}}]}`, n)
	}}
	words := func(n int) string {
		return fmt.Sprintf("unable to open file '/var/log/out-%d': No such file or directory", n)
	}
	one.change(t, &logs, 1)
	sending := p.state.Load().sending
	if one.change(t, confOf(t, resources.TypeMeshAccessLog, "rules"), 5) == 0 || p.state.Load().sending != sending {
		t.Error("MeshAccessLog in rules: sent nothing, or built what the proxy sends")
	}
	left := func() bool {
		return slices.ContainsFunc(p.state.Load().sending.problems, func(text string) bool { return strings.Contains(text, "out-1") })
	}
	if one.x.configRefused(p, kindListener, words(1)); !left() {
		t.Errorf("a file that the proxy cannot open is not left out: %q", p.state.Load().sending.problems)
	}
	// The next change makes it try that file again.
	if one.change(t, confOf(t, resources.TypeMeshAccessLog, "rules"), 6) == 0 || left() {
		t.Errorf("the file is not tried again: %q", p.state.Load().sending.problems)
	}
}

// TestAPlanKeepsWhatOtherTypesSay: a change of one type computes the rules of that type only, and a MeshTrace, which is
// in all routes, no plan.
func TestAPlanKeepsWhatOtherTypesSay(t *testing.T) {
	t.Parallel()
	one := newChangeOfOne(t, 3)
	p := one.proxy()
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshRetry, resources.TypeMeshCircuitBreaker,
		resources.TypeMeshHealthCheck, resources.TypeMeshLoadBalancingStrategy} {
		before := p.state.Load().sending.plan.rules
		one.change(t, confOf(t, typ, "to"), 2)
		changed := 0
		for _, rules := range p.state.Load().sending.plan.rules {
			if !slices.Contains(before, rules) {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%s: the rules of %d types were computed, want 1", typ, changed)
		}
	}
	plan := p.state.Load().sending.plan
	if one.change(t, confOf(t, resources.TypeMeshTrace, "default"), 2) == 0 || p.state.Load().sending.plan != plan {
		t.Error("MeshTrace: sent nothing, or has another plan")
	}
}

// TestAPlanKeepsTheClustersOfOthers: a change that concerns no cluster builds none, and one for a service its cluster.
func TestAPlanKeepsTheClustersOfOthers(t *testing.T) {
	t.Parallel()
	one := newChangeOfOne(t, 3)
	p := one.proxy()
	for typ, want := range map[resources.Type]int{resources.TypeMeshHTTPRoute: 0, resources.TypeMeshRetry: 0, resources.TypeMeshTimeout: 1,
		resources.TypeMeshCircuitBreaker: 1, resources.TypeMeshHealthCheck: 1, resources.TypeMeshLoadBalancingStrategy: 1} {
		before := p.state.Load().sending.plan
		if one.change(t, confOf(t, typ, "to"), 2) == 0 || p.state.Load().sending.plan == before {
			t.Errorf("%s: nothing was sent, or it has the same plan", typ)
		}
		now := p.state.Load().sending.plan
		if got := newIn(before.configs, now.configs); got != want || len(now.configs) != 1 {
			t.Errorf("%s: %d of %d clusters were built, want %d of 1", typ, got, len(now.configs), want)
		}
	}
}

// TestARouteThatIsStillTheSame: the rules of a route concern no other policy's references. Its name, labels and services
// do.
func TestARouteThatIsStillTheSame(t *testing.T) {
	t.Parallel()
	one := newChangeOfOne(t, 3)
	known := one.x.network.destinations["default"]
	if one.change(t, confOf(t, resources.TypeMeshHTTPRoute, "to"), 2) == 0 || one.x.network.destinations["default"] != known {
		t.Error("other rules: sent nothing, or read all destinations again")
	}
	key := resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "bench-to-dp-1"}
	rules := `"rules": [{"default": {}, "matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]`
	target := `{"targetRef": {"kind": "Dataplane", "labels": {"proxy": "dp-1"}}, "to": [{"targetRef": {"kind": "MeshService", `
	for name, write := range map[string]func(){
		"another label": func() {
			putText(t, one.store, key, map[string]string{"a": "b"}, target+`"name": "bench"}, `+rules+`}]}`)
		},
		"another service": func() {
			putText(t, one.store, key, map[string]string{"a": "b"}, target+`"name": "other"}, `+rules+`}]}`)
		},
	} {
		write()
		if one.x.catchUp(); one.x.network.destinations["default"] == known {
			t.Errorf("%s: references mean what they did", name)
		}
		known = one.x.network.destinations["default"]
	}
}

// TestTracedRoutes: routes to which sampling and tags are added after they were marshalled are those that have them.
func TestTracedRoutes(t *testing.T) {
	t.Parallel()
	table := func(tracing *routev3.Tracing) *routev3.RouteConfiguration {
		out := &routev3.RouteConfiguration{Name: "r", RequestHeadersToRemove: []string{"x"}}
		for _, name := range []string{"a", "b"} {
			host := &routev3.VirtualHost{Name: name, Domains: []string{name}, ResponseHeadersToRemove: []string{"y"}}
			for i, path := range []string{"/refused", "/1", "/2"} {
				route := &routev3.Route{Name: path, Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: path}},
					Action:     &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}},
					StatPrefix: "after"}
				if i > 0 {
					route.Tracing = tracing
				}
				host.Routes = append(host.Routes, route)
			}
			out.VirtualHosts = append(out.VirtualHosts, host)
		}
		return out
	}
	conf, err := readTrace([]byte(`{"sampling": {"random": 12.5}, "tags": [{"name": "a", "literal": "b"}, {"name": "c", "header": {"name": "x-c"}}]}`))
	if err != nil || conf.problem != "" {
		t.Fatal(err, conf.problem)
	}
	bare, err := newResource(kindRoute, "r", table(nil))
	if err != nil {
		t.Fatal(err)
	}
	value, err := withTracing(bare.delta.GetResource().GetValue(), conf.marshalled, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, want := &routev3.RouteConfiguration{}, table(conf.route)
	if err := proto.Unmarshal(value, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
	if before := (&routev3.RouteConfiguration{}); proto.Unmarshal(bare.delta.GetResource().GetValue(), before) != nil || !proto.Equal(before, table(nil)) {
		t.Error("the routes that others share have changed")
	}
	if _, err := withTracing(value[:len(value)-1], conf.marshalled, 1); err == nil {
		t.Error("a table that is cut off has been read")
	}
}
