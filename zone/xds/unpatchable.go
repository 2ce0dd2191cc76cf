package xds

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// unpatchable finds out which patches a proxy refuses. They stay out until a policy changes or the proxy restarts. A
// proxy's error names a resource and not a policy, and a resource may have several, so one policy is withdrawn at a
// time. The order prefers patches that the proxy has not accepted yet, that are not required, that an owner of a
// namespace wrote, and that apply last. So an operator's patch stays in force, whatever an owner writes. Once the proxy
// accepts the resource, the last withdrawn patch was the cause, and the others return. Proxies.mu guards it.
type unpatchable struct {
	// words holds the proxy's error for each withdrawn patch, by the patch's ID.
	words map[string]string
	// accepted holds the patches in resources that the proxy accepted.
	accepted map[patchIn]bool
	// suspects are the patches withdrawn since the proxy last accepted one of the resources, in order.
	suspects  []string
	resources map[string]bool
	// tried holds operators' patches whose removal alone did not make the proxy accept them.
	tried map[string]bool
	// changes counts the changes of words.
	changes int
}

// patchIn is a patch, by its id, in a resource.
type patchIn struct {
	kind     kind
	name, id string
}

// again makes the proxy try all patches once more.
func (u *unpatchable) again() {
	u.words, u.suspects, u.resources, u.tried = nil, nil, nil, nil
	u.changes++
}

// refused reads a proxy's error about resources of a kind, and withdraws a patch that changed them. It reports whether
// there is one. If the error names no resource, all patches of the kind are candidates.
func (u *unpatchable) refused(s *state, k kind, words string) bool {
	if s == nil || len(s.patched.by[k]) == 0 {
		return false
	}
	named := false
	for _, r := range s.served(k) {
		named = named || strings.Contains(words, r.name)
	}
	in := map[string]bool{} // and whether the proxy has accepted it in all these resources
	for name, ids := range s.patched.by[k] {
		if named && !strings.Contains(words, name) {
			continue
		}
		for _, id := range ids {
			if _, out := u.words[id]; !out {
				before, seen := in[id]
				in[id] = u.accepted[patchIn{k, name, id}] && (before || !seen)
			}
		}
		if u.resources == nil {
			u.resources = map[string]bool{}
		}
		u.resources[k.String()+" "+name] = true
	}
	next := u.next(s.patched.of, in)
	if next == nil {
		return false
	}
	if u.words == nil {
		u.words, u.tried = map[string]string{}, map[string]bool{}
	}
	u.words[next.id] = strings.SplitN(words, "\n", 2)[0]
	u.suspects = append(u.suspects, next.id)
	u.changes++
	return true
}

// next returns the patch to withdraw from some, given by their IDs. If all of them are operators', the previously
// withdrawn one returns, so that each is tried alone first: one patch stays in force while another is found.
func (u *unpatchable) next(all []*patch, of map[string]bool) *patch {
	best := suspect(all, of)
	last := len(u.suspects) - 1
	if best == nil || !best.ofOperator || last < 0 || !isOperators(all, u.suspects[last]) {
		return best
	}
	untried := maps.Clone(of)
	maps.DeleteFunc(untried, func(id string, _ bool) bool { return u.tried[id] })
	other := suspect(all, untried)
	if other == nil {
		return best // no single one is the cause
	}
	back := u.suspects[last]
	u.tried[back], u.suspects = true, u.suspects[:last]
	delete(u.words, back)
	return other
}

func isOperators(all []*patch, id string) bool {
	return slices.ContainsFunc(all, func(p *patch) bool { return p.id == id && p.ofOperator })
}

// suspect returns the most likely cause among some patches, given by their IDs with whether they were accepted; nil if
// there is none.
func suspect(all []*patch, of map[string]bool) *patch {
	var some []*patch
	for _, p := range slices.Backward(all) {
		if _, is := of[p.id]; is {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return slices.MinFunc(some, func(a, b *patch) int {
		return cmp.Or(first(of[b.id], of[a.id]), first(b.required, a.required), first(b.ofOperator, a.ofOperator))
	})
}

// first orders by a condition: what meets it comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// acceptedOf notes which resources of a kind a proxy accepted, and reports whether patches return as a result.
func (u *unpatchable) acceptedOf(s *state, k kind, sent []*discovery.Resource) bool {
	ended := false
	for _, r := range sent {
		if now := s.served(k).get(r.GetName()); now == nil || now.version != r.GetVersion() {
			continue
		}
		ended = ended || u.resources[k.String()+" "+r.GetName()]
		for _, id := range s.patched.by[k][r.GetName()] {
			if u.accepted == nil {
				u.accepted = map[patchIn]bool{}
			}
			u.accepted[patchIn{k, r.GetName(), id}] = true
		}
	}
	if !ended {
		return false
	}
	innocent := u.suspects[:max(len(u.suspects)-1, 0)]
	for _, id := range innocent {
		delete(u.words, id)
	}
	u.suspects, u.resources, u.tried = nil, nil, map[string]bool{}
	if len(innocent) > 0 {
		u.changes++
	}
	return len(innocent) > 0
}
