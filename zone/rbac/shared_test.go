package rbac

import (
	"strconv"
	"testing"

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
			want := listMatcher(steps(rules, matching.HTTP, false), toldBy{})
			got := listMatcher(steps(rules, matching.HTTP, false), toldBy{})
			again := listMatcher(steps(rules, matching.HTTP, false), toldBy{})
			if !proto.Equal(got, want) || !proto.Equal(again, want) {
				t.Error("the second list differs from the first")
			}
			ours, theirs := got.GetMatcherList().GetMatchers(), again.GetMatcherList().GetMatchers()
			if shared := ours[len(ours)-1].GetPredicate() == theirs[len(theirs)-1].GetPredicate(); shared != c.shared {
				t.Errorf("lists share the rule: %v, want %v", shared, c.shared)
			}
		})
	}
}
