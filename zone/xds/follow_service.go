package xds

import (
	"iter"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// followed is what a proxy follows of services: those of a kind with a name or a label, or all of a kind.
type followed struct {
	kind resources.Type
	// name is empty for a label, and for all.
	name string
	// label and value are a label, of several the one with the smallest key.
	label, value string
}

// followsOf returns keys of which a service has one if its change may concern the result, each once. They find at least
// what concerned does.
func (s *sending) followsOf() []followed {
	keys := map[followed]struct{}{}
	if s.egress {
		keys[followed{kind: resources.TypeMeshExternalService}] = struct{}{}
	}
	if s.joined {
		keys[followed{kind: resources.TypeMeshService}] = struct{}{}
	}
	if s.named {
		for _, kind := range hostnames.Kinds() {
			keys[followed{kind: kind}] = struct{}{}
		}
	}
	for i := range s.refs {
		ref := &s.refs[i]
		key := followed{kind: resources.Type(ref.ServiceKind()), name: ref.Name}
		if len(ref.Labels) > 0 {
			label := slices.Min(slices.Collect(maps.Keys(ref.Labels)))
			key.name, key.label, key.value = "", label, ref.Labels[label]
		}
		keys[key] = struct{}{}
	}
	return slices.Collect(maps.Keys(keys))
}

// keys returns the keys under which proxies follow the service.
func (m *referent) keys() []followed {
	out := []followed{{kind: m.Type}}
	for i, name := range m.names {
		if !slices.Contains(m.names[:i], name) {
			out = append(out, followed{kind: m.Type, name: name})
		}
	}
	for label, value := range m.Labels {
		out = append(out, followed{kind: m.Type, label: label, value: value})
	}
	return out
}

// follow files a proxy under what its configuration follows; it is nil for none.
func (m *mesh) follow(p *proxy, s *sending) {
	var next []followed
	if s != nil {
		next = s.follows
	}
	if len(next) == len(p.follows) && (len(next) == 0 || &next[0] == &p.follows[0]) {
		return // of the same plan
	}
	for _, key := range p.follows {
		unfile(m.following, key, p)
	}
	p.follows = next
	for _, key := range next {
		file(m.following, key, p)
	}
}

// followers yields the proxies whose configuration a change of the service may concern, some of them more than once.
func (m *mesh) followers(r *referent) iter.Seq[*proxy] {
	return func(yield func(*proxy) bool) {
		for _, key := range r.keys() {
			for p := range m.following[key] {
				if s := p.state.Load(); p.target != nil && s.sending.concerned(r) && !yield(p) {
					return
				}
			}
		}
	}
}

// servedBy yields the proxies with an inbound that a MeshService selects; none for another type.
func (m *mesh) servedBy(r *resources.Resource) iter.Seq[*proxy] {
	return func(yield func(*proxy) bool) {
		if r.Type != resources.TypeMeshService {
			return
		}
		for p := range fewest(m.meeting, matching.ServedBy(r)) {
			if serves(r, p.target.match) && !yield(p) {
				return
			}
		}
	}
}
