package rbac_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	rbacconfig "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	netrbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	networkinputs "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	sslinputs "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/ssl/v3"
	envoymatcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// interpreter evaluates a generated matcher as the API's definition specifies for Envoy. It does not depend on how the
// matcher was generated, and fails for a matcher that Envoy would refuse.
type interpreter struct {
	req rbac.Request
}

// run returns the action's name and whether it allows. A matcher without a result is Envoy's deny, which has no name.
func (x interpreter) run(m *xdsmatcher.Matcher) (name string, allowed bool) {
	action := x.match(m)
	if action == nil {
		return "", false
	}
	return action.GetName(), action.GetAction() == rbacconfig.RBAC_ALLOW
}

func (x interpreter) match(m *xdsmatcher.Matcher) *rbacconfig.Action {
	switch kind := m.GetMatcherType().(type) {
	case *xdsmatcher.Matcher_MatcherList_:
		if len(kind.MatcherList.GetMatchers()) == 0 {
			panic("Envoy refuses an empty list")
		}
		for _, f := range kind.MatcherList.GetMatchers() {
			if !x.predicate(f.GetPredicate()) {
				continue
			}
			if a := x.onMatch(f.GetOnMatch()); a != nil {
				return a
			}
		}
	case *xdsmatcher.Matcher_MatcherTree_:
		if a := x.tree(kind.MatcherTree); a != nil {
			return a
		}
	}
	return x.onMatch(m.GetOnNoMatch())
}

// tree looks up exact keys, or prefixes from the longest to the shortest: a longer one without a result falls back.
func (x interpreter) tree(t *xdsmatcher.Matcher_MatcherTree) *rbacconfig.Action {
	value, ok := x.input(t.GetInput())
	if !ok {
		return nil
	}
	if exact := t.GetExactMatchMap(); exact != nil {
		if len(exact.GetMap()) == 0 {
			panic("Envoy refuses an empty map")
		}
		return x.onMatch(exact.GetMap()[value])
	}
	prefixes := t.GetPrefixMatchMap().GetMap()
	if len(prefixes) == 0 {
		panic("Envoy refuses an empty map")
	}
	for n := len(value); n >= 0; n-- {
		if on, ok := prefixes[value[:n]]; ok {
			if a := x.onMatch(on); a != nil {
				return a
			}
		}
	}
	return nil
}

func (x interpreter) onMatch(on *xdsmatcher.Matcher_OnMatch) *rbacconfig.Action {
	if on == nil {
		return nil
	}
	if m := on.GetMatcher(); m != nil {
		return x.match(m)
	}
	var a rbacconfig.Action
	if err := on.GetAction().GetTypedConfig().UnmarshalTo(&a); err != nil {
		panic(err)
	}
	if a.GetName() == "" {
		panic("Envoy refuses an action without a name")
	}
	return &a
}

func (x interpreter) predicate(p *xdsmatcher.Matcher_MatcherList_Predicate) bool {
	switch kind := p.GetMatchType().(type) {
	case *xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_:
		value, ok := x.input(kind.SinglePredicate.GetInput())
		return matchString(kind.SinglePredicate.GetValueMatch(), value) && ok
	case *xdsmatcher.Matcher_MatcherList_Predicate_NotMatcher:
		return !x.predicate(kind.NotMatcher)
	case *xdsmatcher.Matcher_MatcherList_Predicate_AndMatcher:
		return x.count(kind.AndMatcher) == len(kind.AndMatcher.GetPredicate())
	case *xdsmatcher.Matcher_MatcherList_Predicate_OrMatcher:
		return x.count(kind.OrMatcher) > 0
	}
	panic(fmt.Sprintf("predicate %v", p))
}

func (x interpreter) count(list *xdsmatcher.Matcher_MatcherList_Predicate_PredicateList) int {
	if len(list.GetPredicate()) < 2 {
		panic("Envoy refuses and/or of fewer than two")
	}
	n := 0
	for _, p := range list.GetPredicate() {
		if x.predicate(p) {
			n++
		}
	}
	return n
}

// input returns the value that Envoy would read, and whether there is one.
func (x interpreter) input(e *xdscore.TypedExtensionConfig) (string, bool) {
	switch m := inputOf(e).(type) {
	case *sslinputs.UriSanInput:
		return strings.Join(x.req.URISANs, ","), len(x.req.URISANs) > 0
	case *networkinputs.ServerNameInput:
		return strings.ToLower(x.req.SNI), x.req.SNI != ""
	case *envoymatcher.HttpRequestHeaderMatchInput:
		if x.req.Protocol != matching.HTTP {
			panic("Envoy's network filter refuses header inputs")
		}
		switch m.GetHeaderName() {
		case ":path":
			return x.req.Path, true
		case ":method":
			return x.req.Method, true
		}
		value, there := x.req.Headers[m.GetHeaderName()]
		return value, there
	}
	panic(fmt.Sprintf("input %v", e))
}

func matchString(m *xdsmatcher.StringMatcher, value string) bool {
	switch p := m.GetMatchPattern().(type) {
	case *xdsmatcher.StringMatcher_Exact:
		return value == p.Exact
	case *xdsmatcher.StringMatcher_Prefix:
		if p.Prefix == "" {
			panic("Envoy refuses an empty prefix")
		}
		return strings.HasPrefix(value, p.Prefix)
	case *xdsmatcher.StringMatcher_Contains:
		return strings.Contains(value, p.Contains)
	case *xdsmatcher.StringMatcher_SafeRegex:
		return compiled(p.SafeRegex.GetRegex()).MatchString(value)
	}
	panic(fmt.Sprintf("string matcher %v", m))
}

// filters are those generated for one set of rules.
type filters struct {
	http             *httprbac.RBAC
	dryRun, enforced *netrbac.RBAC
}

func filtersOf(form rbac.Form, rules matching.Rules) filters {
	dryRun, enforced := form.NetworkFilters(rules, "inbound.")
	return filters{decoded(form.HTTPFilter(rules)).(*httprbac.RBAC), decoded(dryRun).(*netrbac.RBAC), decoded(enforced).(*netrbac.RBAC)}
}

// decoded returns a filter as Envoy decodes it. Envoy's own checks must agree with those of the filter.
func decoded(f rbac.Filter) proto.Message {
	raw, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	out := f.ProtoReflect().New().Interface().(interface {
		proto.Message
		Validate() error
	})
	if err := proto.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	if ours, theirs := f.Validate(), out.Validate(); (ours == nil) != (theirs == nil) {
		panic(fmt.Sprintf("the filter says %v, Envoy %v", ours, theirs))
	}
	return out
}

var forms = []rbac.Form{rbac.List, rbac.Compiled}

// answers judges a request by the generated filters. It returns the enforced decision and that of the dry run.
func (f filters) answers(t testing.TB, req rbac.Request) (enforced, dryRun decision) {
	t.Helper()
	x := interpreter{req}
	if req.Protocol == matching.HTTP {
		enforced = decide(x, f.http.GetMatcher())
		if f.http.GetShadowMatcher() == nil {
			return enforced, enforced
		}
		return enforced, decide(x, f.http.GetShadowMatcher())
	}
	if f.dryRun.GetMatcher() != nil || f.enforced.GetMatcher() == nil {
		t.Fatal("the first network filter must only report, the second must enforce")
	}
	enforced = decide(x, f.enforced.GetMatcher())
	if shadow := decide(x, f.enforced.GetShadowMatcher()); shadow != enforced {
		t.Fatal("the second network filter must report what it enforces")
	}
	return enforced, decide(x, f.dryRun.GetShadowMatcher())
}

// decision is what Envoy reports about one matcher's answer.
type decision struct {
	name    string
	allowed bool
}

func decide(x interpreter, m *xdsmatcher.Matcher) decision {
	name, allowed := x.run(m)
	return decision{name, allowed}
}

// inputsRead caches the inputs that interpreters have read, by type and value: filters repeat the same few many times.
var inputsRead sync.Map

func inputOf(e *xdscore.TypedExtensionConfig) proto.Message {
	key := e.GetTypedConfig().GetTypeUrl() + "\x00" + string(e.GetTypedConfig().GetValue())
	if m, ok := inputsRead.Load(key); ok {
		return m.(proto.Message)
	}
	m, err := e.GetTypedConfig().UnmarshalNew()
	if err != nil {
		panic(err)
	}
	inputsRead.Store(key, m)
	return m
}

// expressionsCompiled caches compiled expressions: compiling takes longer than the rest of an interpreter's work.
var expressionsCompiled sync.Map

func compiled(expression string) *regexp.Regexp {
	if re, ok := expressionsCompiled.Load(expression); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(`\A(?:` + expression + `)\z`)
	expressionsCompiled.Store(expression, re)
	return re
}
