package xds

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// An outbound may name tags of Dataplanes instead of a service. What they mean is computed once for all proxies of a
// namespace, and again when a Dataplane, a MeshService or an ingress that may be part of it changes.

// meant is what the outbounds of a namespace mean by tags.
type meant struct {
	// namespace is that of the outbounds' proxies.
	namespace string
	*matching.Tagged
}

// taggedKey returns the key of tags in rules.
func taggedKey(name, mesh string) matching.ResourceKey {
	return matching.ResourceKey{Type: resources.TypeMeshService, Mesh: mesh, Name: name}
}

// taggedBackend returns what an outbound by tags sends to.
func taggedBackend(name string, t *matching.Tagged) *backend {
	key := taggedKey(name, t.Mesh)
	r := &resources.Resource{Key: resources.Key{Type: key.Type, Mesh: key.Mesh, Name: key.Name},
		Labels: map[string]string{resources.LabelDisplayName: t.Tags[resources.TagService]}}
	return &backend{name: name, service: &matching.Destination{Resource: r}, protocol: t.Protocol, tagged: t}
}

// serverNames returns the server names by which a proxy asks the ingresses of other zones.
func (b *backend) serverNames() []string {
	var out []string
	if b.tagged == nil {
		return nil
	}
	for i := range b.tagged.Away {
		if far, ok := awayBackend(&b.tagged.Away[i]); ok {
			out = append(out, far.sni())
			if other := far.hashedSNI(); other != "" {
				out = append(out, other)
			}
		}
	}
	return out
}

// awayBackend returns the service port that another zone has for tags; ok is false if its ingress knows the tags.
func awayBackend(a *matching.TaggedAway) (b *backend, ok bool) {
	if a.Service == nil {
		return nil, false
	}
	return newBackend(a.Service, a.Section)
}

// maxServerName is the longest server name that a client can ask for.
const maxServerName = 255

// taggedSNI returns the server name of tags, in Kuma's spelling: `<service>{<tags>}`, with the mesh among the tags.
func (b *backend) taggedSNI() string {
	others := maps.Clone(b.tagged.Tags)
	delete(others, resources.TagService)
	others["mesh"] = b.mesh()
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(others)) {
		parts = append(parts, k+"="+others[k])
	}
	out := b.tagged.Tags[resources.TagService] + "{" + strings.Join(parts, ",") + "}"
	if len(out) > maxServerName {
		return "tags-" + hashOf(out)
	}
	return out
}

// taggedOf returns what the outbounds of a target mean by tags, by the name of the cluster.
func (n *network) taggedOf(t *target) map[string]*matching.Tagged {
	if !slices.ContainsFunc(t.outbounds, func(o outbound) bool { return o.tags != nil }) {
		return nil
	}
	out := map[string]*matching.Tagged{}
	mesh, namespace := t.match.Key.Mesh, t.match.Namespace
	input := sync.OnceValue(func() matching.TaggedInput { return n.taggedInput(mesh) })
	for i := range t.outbounds {
		if tags := t.outbounds[i].tags; tags != nil {
			name := matching.TaggedName(mesh, namespace, tags)
			if n.meanings[name] == nil {
				n.meanings[name] = &meant{namespace, mean(input(), namespace, tags)}
			}
			out[name] = n.meanings[name].Tagged
		}
	}
	return out
}

// taggedText identifies what outbounds mean by tags.
func taggedText(tagged map[string]*matching.Tagged) string {
	if len(tagged) == 0 {
		return ""
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tagged)) {
		fmt.Fprintf(&out, "%s\n%s\n\n", name, tagged[name].ID())
	}
	return out.String()
}

// taggedRules returns the same by the keys of rules.
func taggedRules(tagged map[string]*matching.Tagged) map[matching.ResourceKey]*matching.Tagged {
	out := make(map[matching.ResourceKey]*matching.Tagged, len(tagged))
	for name, t := range tagged {
		out[taggedKey(name, t.Mesh)] = t
	}
	return out
}

// taggedInput returns what tags may mean in a mesh, without the tags and their namespace. It reads the whole mesh.
func (n *network) taggedInput(mesh string) matching.TaggedInput {
	in := matching.TaggedInput{Mesh: mesh, Zone: n.home.Zone, SystemNamespace: n.home.SystemNamespace}
	for m := range n.candidatesIn(mesh) {
		in.Proxies = append(in.Proxies, m.match)
	}
	snap := n.store.Snapshot()
	for r := range snap.List(store.Query{Type: resources.TypeMeshService, Mesh: mesh}) {
		if d := n.destination(r); d != nil {
			in.Services = append(in.Services, d)
		}
	}
	in.Ingresses = slices.Collect(snap.List(store.Query{Type: resources.TypeZoneIngress}))
	return in
}

func mean(in matching.TaggedInput, namespace string, tags map[string]string) *matching.Tagged {
	in.Namespace, in.Tags = namespace, tags
	return matching.NewTagged(&in)
}

// candidatesIn yields the Dataplanes of a mesh.
func (n *network) candidatesIn(mesh string) iter.Seq[*candidate] {
	return func(yield func(*candidate) bool) {
		for _, dp := range n.dataplanesIn(mesh) {
			if m := n.read(dp); m != nil && !yield(m) {
				return
			}
		}
	}
}

// doubt marks what a port's tags mean to be computed again.
func (n *network) doubt(port *usedPort) {
	n.doubted[port.name] = struct{}{}
	n.dirtyPorts[port] = struct{}{}
}

// reconsider computes again what is doubted, and marks the proxies that need other clusters.
func (n *network) reconsider() {
	inputs := map[string]matching.TaggedInput{} // by mesh
	for name := range n.doubted {
		of := n.meanings[name]
		if of == nil {
			continue
		}
		if _, read := inputs[of.Mesh]; !read {
			inputs[of.Mesh] = n.taggedInput(of.Mesh)
		}
		next := mean(inputs[of.Mesh], of.namespace, of.Tags)
		if next.ID() == of.ID() {
			continue
		}
		n.meanings[name] = &meant{of.namespace, next}
		for _, port := range n.ports {
			if port.name != name {
				continue
			}
			for p := range port.users {
				n.mark(p, sendingScope)
			}
		}
	}
	clear(n.doubted)
}

// forgetMeaning drops what no port has: only ports follow changes.
func (n *network) forgetMeaning(name string) {
	for _, port := range n.ports {
		if port.name == name {
			return
		}
	}
	delete(n.meanings, name)
}

// tagServices returns the MeshServices of other zones behind tags.
func (n *network) tagServices(t *matching.Tagged) []*resources.Resource {
	var out []*resources.Resource
	for i := range t.Away {
		if t.Away[i].Service == nil {
			continue
		}
		if r := n.store.Snapshot().Get(t.Away[i].Service.Resource.Key); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// taggedEndpoints returns the inbounds of this zone that tags mean, and the ingresses of the other zones that have
// some.
func (n *network) taggedEndpoints(t *matching.Tagged) (here []behind, away map[string][]behind) {
	for m := range n.candidatesIn(t.Mesh) {
		_, absent := n.presence.absent[m.dataplane.Key]
		for _, i := range t.Carriers(m.match) {
			if m.places[i].port != 0 {
				here = append(here, behind{endpoint: m.places[i], absent: absent, proxy: m.match})
			}
		}
	}
	away = map[string][]behind{}
	for i := range t.Away {
		zone := t.Away[i].Zone
		far, named := awayBackend(&t.Away[i])
		for _, at := range n.ingresses(zone) {
			if named {
				if at.server = far.sni(); at.hashed {
					at.server = cmp.Or(far.hashedSNI(), at.server)
				}
			}
			at.hashed = false
			away[zone] = append(away[zone], at)
		}
	}
	return here, away
}
