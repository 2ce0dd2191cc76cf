package xds

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/proxypatch"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// patch is a MeshProxyPatch as it applies to a proxy. It is immutable.
type patch struct {
	kri string
	// id identifies the policy with its conf.
	id   string
	conf *proxypatch.Edits
	// unguarded means that its author may open what permissions close.
	unguarded bool
	// required means that the proxy must not be reachable without it.
	required bool
	// ofOperator means that no owner of a namespace wrote it.
	ofOperator bool
}

// patchedKinds are the kinds that patches change.
var patchedKinds = []kind{kindCluster, kindListener, kindRoute}

// patched is the result of MeshProxyPatches for a state. The zero value changes nothing.
type patched struct {
	// sets holds what the proxy is sent of patchedKinds; nil if that equals the state.
	sets *[kinds]set
	// of lists the patches. without is the state of the patches that the proxy refused.
	of      []*patch
	without int
	// closed means that a required patch cannot be read.
	closed bool
	// by holds the ids of the patches that changed a resource.
	by map[kind]map[string][]string
	// problems names patches without effect.
	problems []string
}

// served returns the resources of a kind that the proxy is sent.
func (s *state) served(k kind) set {
	if s.patched.sets != nil && slices.Contains(patchedKinds, k) {
		return s.patched.sets[k]
	}
	return s.sets[k]
}

// maxOwnersPatches limits the MeshProxyPatches of owners of namespaces for one proxy: each of them costs every change of
// that proxy.
const maxOwnersPatches = 128

// patchBy finds the MeshProxyPatches of a target. An invalid one, which only a peer can send, has no effect.
func (t *target) patchBy(policies []*matching.Policy) error {
	owners := 0
	for _, policy := range matching.ProxyPolicies(resources.TypeMeshProxyPatch, t.match, policies) {
		if read := t.patches.read(policy, t.dataplane); read.problem != "" {
			t.observed.problem(policy.KRI.String(), read.problem)
			t.observed.closed = t.observed.closed || resources.Required(policy.Resource)
		} else if !read.patch.ofOperator && owners == maxOwnersPatches {
			t.observed.problem(policy.KRI.String(), fmt.Sprintf(
				"%d other MeshProxyPatches of owners of namespaces apply before it, the maximum for one proxy: put their appendModifications into fewer", maxOwnersPatches))
			t.observed.closed = t.observed.closed || resources.Required(policy.Resource)
		} else {
			if !read.patch.ofOperator {
				owners++
			}
			t.observed.patches = append(t.observed.patches, read.patch)
		}
	}
	return nil
}

// isOwn reports whether a policy was written in the Dataplane's zone.
func isOwn(policy, dataplane *resources.Resource) bool {
	return policy.Labels[resources.LabelOrigin] == resources.OriginZone && policy.Zone() == dataplane.Zone()
}

// oneLine returns a text without the separator of problems.
func oneLine(text string) string { return strings.ReplaceAll(text, "; ", ", ") }

// serve sets what the proxy is sent. If a patch does something forbidden, or the proxy refuses it, only that policy
// loses its effect.
func (s *state) serve(x *Proxies, p *proxy) {
	s.patched = patched{}
	if p.target == nil || len(p.target.observed.patches) == 0 && !p.target.observed.closed || p.proxyless {
		return
	}
	old := p.state.Load()
	if old != nil && s.samePatches(old, p) {
		s.patched = old.patched
		return
	}
	s.patched = patched{of: p.target.observed.patches, without: p.unpatchable.changes,
		closed: p.target.observed.closed, by: map[kind]map[string][]string{}}
	if _, err := built(x, func() (struct{}, error) { return struct{}{}, s.patchAll(p, old) }); err != nil {
		s.patched.sets, s.patched.by = nil, nil
		s.patched.problems = append(s.patched.problems, "no MeshProxyPatch has an effect: "+oneLine(err.Error()))
		if slices.ContainsFunc(s.patched.of, func(one *patch) bool { return one.required }) {
			s.close(p.target)
		}
	}
}

// close removes the listeners that others than the application can reach.
func (s *state) close(t *target) {
	sets := s.sets
	sets[kindListener] = nil
	for _, r := range s.sets[kindListener] {
		if t.gateway == nil && s.originOf(kindListener, r.name) == proxypatch.OriginOutbound {
			sets[kindListener] = append(sets[kindListener], r)
		}
	}
	s.patched.sets = &sets
}

// patchAll sets the result of the proxy's patches.
func (s *state) patchAll(p *proxy, old *state) error {
	config, err := s.patchable(p.target)
	if err != nil {
		return err
	}
	return s.setPatched(p.target, config, s.applyPatches(p, config), old)
}

// samePatches reports whether the result for old also applies to s.
func (s *state) samePatches(old *state, p *proxy) bool {
	for _, k := range patchedKinds {
		if !s.sets[k].equal(old.sets[k]) {
			return false
		}
	}
	return s.sameForwarders(old) && slices.Equal(old.patched.of, p.target.observed.patches) && old.patched.closed == p.target.observed.closed && old.patched.without == p.unpatchable.changes
}

// applyPatches returns the configuration after all patches that may apply. An operator's patch may come after an owner's,
// and add a filter that the owner's already configures: then all apply once more, and the owner's is refused.
func (s *state) applyPatches(p *proxy, config *proxypatch.Config) *proxypatch.Config {
	said, kept := s.patched.problems, map[string]bool{}
	for {
		now, late := s.applyKeeping(p, config, kept)
		if !late {
			return now
		}
		s.patched.problems = said
	}
}

// applyKeeping applies all patches that may apply. Those of owners configure none of the filters that are kept, to which
// it adds those of operators' patches. late means that one of them was added after an owner's patch.
func (s *state) applyKeeping(p *proxy, config *proxypatch.Config, kept map[string]bool) (now *proxypatch.Config, late bool) {
	guard := proxypatch.Guard{Original: config, Own: p.target.addresses(), Trusted: p.target.own}
	now, closed, owners := config, p.target.observed.closed, false
	for _, one := range p.target.observed.patches {
		problem := func(text string) { s.patched.problems = append(s.patched.problems, one.kri+": "+oneLine(text)) }
		if words, refused := p.unpatchable.words[one.id]; refused {
			problem("the proxy refuses the result, change the policy or restart the proxy: " + words)
			closed = closed || one.required
			continue
		}
		next, err := now.Apply(one.id, one.conf)
		if guard.Kept = nil; !one.ofOperator {
			guard.Kept, owners = kept, true
		}
		if err == nil && !one.unguarded {
			err = guard.Check(now, next)
		}
		if err == nil && one.ofOperator {
			var added []string
			added, err = proxypatch.AddedFilters(now, next)
			for _, name := range added {
				late = late || owners && !kept[name]
				kept[name] = true
			}
		}
		switch {
		case err != nil:
			problem(err.Error())
			closed = closed || one.required
		case next.Same(now):
			problem("none of its modifications changes anything of this proxy")
		default:
			now = next
		}
	}
	if closed {
		s.patched.problems = slices.Insert(s.patched.problems, 0, "a required MeshProxyPatch has no effect: the proxy is unreachable until it has")
		return now.Closed(), late
	}
	return now, late
}

// addresses returns the addresses of the Dataplane and its inbounds.
func (t *target) addresses() (out []netip.Addr) {
	for i := range t.inbounds {
		for _, at := range []endpoint{t.inbounds[i].listen, t.inbounds[i].service} {
			if ip, err := netip.ParseAddr(at.address); err == nil {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out
}

// addedKey is everything that a resource which a patch adds depends on: the value of the policy, which proxies share.
type addedKey struct {
	kind  kind
	name  string
	value proto.Message
}

// patchedResource returns what the proxy is sent of a resource that a patch changed or added.
func patchedResource(t *target, k kind, after *proxypatch.Config, r *proxypatch.Resource) (*resource, error) {
	value, err := after.Read(r)
	if err != nil {
		return nil, err
	}
	return t.shared.added.get(addedKey{k, r.Name, value}, func() (*resource, error) { return newResource(k, r.Name, value.(message)) })
}

// setPatched makes the result of patches the configuration that the proxy is sent.
func (s *state) setPatched(t *target, before, after *proxypatch.Config, old *state) error {
	var sets [kinds]set
	for k, pair := range map[kind][2]map[string]*proxypatch.Resource{
		kindCluster: {before.Clusters, after.Clusters}, kindListener: {before.Listeners, after.Listeners},
		kindRoute: {before.Routes, after.Routes},
	} {
		s.patched.by[k] = map[string][]string{}
		if admin := s.sets[k].get(adminListener); admin != nil {
			sets[k] = append(sets[k], admin)
		}
		for name, r := range pair[1] {
			if k == kindListener && name == adminListener {
				continue
			}
			if r == pair[0][name] {
				sets[k] = append(sets[k], s.sets[k].get(name))
				continue
			}
			made, err := patchedResource(t, k, after, r)
			if err != nil {
				return err
			}
			s.patched.by[k][name] = r.PatchedBy
			sets[k] = append(sets[k], made)
		}
		sets[k] = newSet(sets[k]...)
		if old != nil {
			sets[k] = sets[k].keepOf(old.served(k))
		}
	}
	s.patched.sets = &sets
	return nil
}
