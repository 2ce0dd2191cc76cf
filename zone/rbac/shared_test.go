package rbac

import (
	"strconv"
	"testing"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestListsShareRules: a rule that many lists have is written once, from the second list on, unless it is large; and what
// they share is what each had by itself.
func TestListsShareRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		identities int
		shared     bool
	}{"small": {mostShared, true}, "large": {mostShared + 1, false}} {
		t.Run(name, func(t *testing.T) {
			var conf resources.PermissionConf
			for i := range c.identities {
				conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{
					Type: resources.MatchExact, Value: "spiffe://default.zone-1.mesh.local/ns/shop/sa/" + strconv.Itoa(i)}})
			}
			rules := matching.Rules{Items: []matching.Rule{{Conf: conf, Made: &matching.Made{}}}}
			var lists [3]*xdsmatcher.Matcher
			for i := range lists {
				var refused error
				if lists[i], refused = listMatcher(steps(rules, matching.HTTP, false), toldBy{}); refused != nil {
					t.Fatal(refused)
				}
			}
			want, got, again := lists[0], lists[1], lists[2]
			if !proto.Equal(got, want) || !proto.Equal(again, want) {
				t.Error("the second list differs from the first")
			}
			ours, theirs := got.GetMatcherList().GetMatchers(), again.GetMatcherList().GetMatchers()
			if shared := ours[len(ours)-1] == theirs[len(theirs)-1]; shared != c.shared {
				t.Errorf("lists share the rule: %v, want %v", shared, c.shared)
			}
		})
	}
}

// TestListsWithAMatcherThatEnvoyRefuses: one such matcher makes the whole list one that Envoy refuses.
func TestListsWithAMatcherThatEnvoyRefuses(t *testing.T) {
	t.Parallel()
	good := step{name: "good", decision: action("good", false), entries: []entry{{identity: []test{{resources.MatchExact, "spiffe://a/b"}}}}}
	for what, bad := range map[string]step{
		"no text": {name: "bad", decision: action("bad", false), entries: []entry{{identity: []test{{resources.MatchExact, "\xff"}}}}},
		"no expression": {name: "bad", decision: action("bad", true),
			entries: []entry{{path: []test{{resources.MatchRegularExpression, ""}}}}},
	} {
		for _, list := range [][]*step{{&bad, &good}, {&good, &bad}} {
			if _, refused := listMatcher(list, toldBy{}); refused == nil {
				t.Errorf("%s: the list is accepted", what)
			}
		}
	}
	if _, refused := listMatcher([]*step{&good}, toldBy{}); refused != nil {
		t.Error(refused)
	}
}
