package matching_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// drawnRule is a rule of a route. Its conf is a number that no other rule has.
type drawnRule struct {
	matches []drawnMatch
	conf    map[string]any
}

// drawnMatch is a match; what is empty matches everything.
type drawnMatch struct{ exact, prefix, method string }

func drawRules(t *rapid.T, typ resources.Type) (rules []drawnRule) {
	n := 1
	if typ == resources.TypeMeshHTTPRoute {
		n = rapid.IntRange(1, 3).Draw(t, "rules")
	}
	for range n {
		rule := drawnRule{conf: map[string]any{"n": float64(rapid.IntRange(0, 1<<30).Draw(t, "conf"))}}
		if typ == resources.TypeMeshHTTPRoute {
			for range rapid.IntRange(0, 2).Draw(t, "matches") {
				m := drawnMatch{method: rapid.SampledFrom([]string{"", "", "GET"}).Draw(t, "method")}
				switch path := rapid.SampledFrom([]string{"", "=/a", "=/a/b", "/", "/a", "/a/b"}).Draw(t, "path"); {
				case strings.HasPrefix(path, "="):
					m.exact = path[1:]
				default:
					m.prefix = path
				}
				rule.matches = append(rule.matches, m)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

func writtenRules(rules []drawnRule) (list []any) {
	for _, r := range rules {
		written := map[string]any{"default": r.conf}
		var matches []any
		for _, m := range r.matches {
			matches = append(matches, m.written())
		}
		if matches != nil {
			written["matches"] = matches
		}
		list = append(list, written)
	}
	return list
}

func (m drawnMatch) written() map[string]any {
	out := map[string]any{}
	if m.exact != "" {
		out["path"] = map[string]any{"type": "Exact", "value": m.exact}
	}
	if m.prefix != "" {
		out["path"] = map[string]any{"type": "PathPrefix", "value": m.prefix}
	}
	if m.method != "" {
		out["method"] = m.method
	}
	return out
}

// holds reports whether a match is for a request.
func (m drawnMatch) holds(method, path string) bool {
	if m.method != "" && m.method != method || m.exact != "" && m.exact != path {
		return false
	}
	prefix := strings.TrimSuffix(m.prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// before reports whether a match is more specific: an exact path, then the longer prefix, then one with a method
// (seed 000, "Problem 2", step 5).
func (m drawnMatch) before(o drawnMatch) bool {
	rank := func(m drawnMatch) int {
		if m.exact != "" {
			return 1000 + len(m.exact)
		}
		return len(m.prefix)
	}
	if rank(m) != rank(o) {
		return rank(m) > rank(o)
	}
	return m.method != "" && o.method == ""
}

// routed returns the conf that the reference has for a request: of the rules that hold, that with the most specific
// match; among equals that of the last item; in one item the first.
func routed(items []placed, counts func(placed) bool, method, path string) (conf any) {
	var best drawnMatch
	for at := len(items) - 1; at >= 0; at-- {
		if !counts(items[at]) {
			continue
		}
		for _, r := range items[at].rules {
			matches := r.matches
			if len(matches) == 0 {
				matches = []drawnMatch{{}}
			}
			for _, m := range matches {
				if m.holds(method, path) && (conf == nil || m.before(best)) {
					best, conf = m, any(r.conf)
				}
			}
		}
	}
	return conf
}

// tried returns the conf of the first rule that holds, as a proxy tries them.
func tried(t *rapid.T, rules []matching.RouteRule, method, path string) any {
	for _, r := range rules {
		var m struct {
			Path   struct{ Type, Value string }
			Method string
		}
		if r.Match != nil {
			if err := json.Unmarshal(r.Match, &m); err != nil {
				t.Fatal(err)
			}
		}
		drawn := drawnMatch{method: m.Method}
		if m.Path.Type == "Exact" {
			drawn.exact = m.Path.Value
		} else {
			drawn.prefix = m.Path.Value
		}
		if drawn.holds(method, path) {
			return asAny(t, r.Conf)
		}
	}
	return nil
}

// checkMany checks a property on a thousand draws, since what tells some orders apart is rare among them. Short runs
// check it on a fifth of that, and on more while seen, if there is one, returns false.
func checkMany(t *testing.T, property func(*rapid.T), seen func() bool) {
	const all, short = 10, 2
	for round := range all {
		if testing.Short() && round >= short && (seen == nil || seen()) {
			return
		}
		rapid.Check(t, property)
	}
}

// TestRoutesAreThoseOfTheSeeds: with any set of routes of each type, a request to a service, and one that enters by a
// gateway, is handled by the rule of the reference.
func TestRoutesAreThoseOfTheSeeds(t *testing.T) {
	handled := map[string]int{}
	kinds := []string{"to a service", "by a gateway"}
	checkMany(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom(routeTypes).Draw(rt, "type")
		w := drawSeedWorld(t, rt, typ)
		in := matching.ToInput{Type: typ, Proxy: w.proxy, Policies: w.policies, Destinations: w.destinations}
		compare := func(what string, counts func(placed) bool, rules []matching.RouteRule) {
			for _, request := range []struct{ method, path string }{{"GET", "/"}, {"GET", "/a"}, {"POST", "/a"}, {"GET", "/a/b"}, {"POST", "/a/b/c"}, {"GET", "/ab"}} {
				want, got := routed(w.items, counts, request.method, request.path), tried(rt, rules, request.method, request.path)
				if diff := gocmp.Diff(want, got); diff != "" {
					rt.Fatalf("%s: %v (-want +got):\n%s", what, request, diff)
				}
				if want != nil {
					handled[what]++
				}
			}
		}
		table := matching.NewRouteTable(in)
		for _, d := range w.destinations.All() {
			compare("to a service", func(it placed) bool {
				return it.top != "gateway" && (it.service == "" || it.service == d.Resource.DisplayName() && it.namespace == d.Resource.HomeNamespace())
			}, table.For(d.Key()))
		}
		if w.serves != "" { // what enters is for no service yet, and operators decide about it
			compare("by a gateway", func(it placed) bool { return it.top == "gateway" && it.role() == 0 && it.service == "" },
				matching.GatewayRoutes(in))
		}
	}, func() bool {
		return !slices.ContainsFunc(kinds, func(what string) bool { return handled[what] == 0 })
	})
	for _, what := range kinds {
		if handled[what] == 0 {
			t.Errorf("no request %s was handled: %s", what, fmt.Sprint(handled))
		}
	}
}
