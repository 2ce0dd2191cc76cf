package matching

import (
	"cmp"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// GatewayTag is a tag that a selector of a MeshGateway requires of a proxy, with one value or any. It is comparable,
// and opaque.
type GatewayTag struct{ key, value string }

// GatewayTags yields the GatewayTags that the proxy has, some of them twice: none unless a MeshGateway configures it.
func (p *Proxy) GatewayTags() iter.Seq[GatewayTag] {
	return func(yield func(GatewayTag) bool) {
		if !p.builtin {
			return
		}
		for _, key := range [...]string{resources.LabelZone, resources.LabelNamespace} {
			if !p.yieldGatewayTag(key, yield) {
				return
			}
		}
		for key := range p.gatewayTags {
			if !p.yieldGatewayTag(key, yield) {
				return
			}
		}
	}
}

func (p *Proxy) yieldGatewayTag(key string, yield func(GatewayTag) bool) bool {
	value := p.gatewayTag(key)
	return value == "" || yield(GatewayTag{key, value}) && yield(GatewayTag{key, anyTag})
}

// SelectorsOf yields the tags of each selector of a MeshGateway. A proxy that may serve it has all tags of one of them.
func SelectorsOf(g *resources.Resource) iter.Seq[[]GatewayTag] {
	return func(yield func([]GatewayTag) bool) {
		spec, err := resources.SpecAs[meshpb.MeshGateway](g)
		if err != nil {
			return
		}
		for _, s := range spec.GetSelectors() {
			tags := make([]GatewayTag, 0, len(s.GetMatch()))
			for key, value := range s.GetMatch() {
				tags = append(tags, GatewayTag{key, value})
			}
			slices.SortFunc(tags, func(a, b GatewayTag) int { return cmp.Compare(a.key, b.key) })
			if len(tags) > 0 && !yield(tags) {
				return
			}
		}
	}
}

// Gateways holds the MeshGateways of a mesh, at most one of a key, so that a proxy is compared only with those that
// require a tag that it has. It is not safe for concurrent use.
type Gateways struct {
	byKey map[resources.Key]filedGateway
	byTag map[GatewayTag]map[resources.Key]*resources.Resource
	// tags counts the selectors that require each tag.
	tags map[GatewayTag]int
}

// filedGateway is a MeshGateway, and the tags under which the set has it: the rarest of each of its selectors at that time.
type filedGateway struct {
	*resources.Resource
	selectors [][]GatewayTag
	under     map[GatewayTag]struct{}
}

// NewGateways returns a set of these MeshGateways.
func NewGateways(all iter.Seq[*resources.Resource]) *Gateways {
	g := &Gateways{byKey: map[resources.Key]filedGateway{}, tags: map[GatewayTag]int{},
		byTag: map[GatewayTag]map[resources.Key]*resources.Resource{}}
	for r := range all {
		g.Add(r)
	}
	return g
}

// Add adds a MeshGateway, replacing the one with the same key. It reports whether the same proxies may serve both.
func (g *Gateways) Add(r *resources.Resource) (same bool) {
	selectors := slices.Collect(SelectorsOf(r))
	before, known := g.byKey[r.Key]
	if known && slices.EqualFunc(before.selectors, selectors, slices.Equal) {
		for tag := range before.under {
			g.byTag[tag][r.Key] = r
		}
		g.byKey[r.Key] = filedGateway{r, before.selectors, before.under}
		return before.Zone() == r.Zone()
	}
	g.Remove(r.Key)
	g.count(selectors, 1)
	under := map[GatewayTag]struct{}{}
	for _, tags := range selectors {
		rarest := slices.MinFunc(tags, func(a, b GatewayTag) int { return cmp.Compare(g.tags[a], g.tags[b]) })
		if g.byTag[rarest] == nil {
			g.byTag[rarest] = map[resources.Key]*resources.Resource{}
		}
		g.byTag[rarest][r.Key], under[rarest] = r, struct{}{}
	}
	g.byKey[r.Key] = filedGateway{r, selectors, under}
	return false
}

// Remove removes the MeshGateway of a key, if there is one.
func (g *Gateways) Remove(key resources.Key) {
	filed, ok := g.byKey[key]
	if !ok {
		return
	}
	delete(g.byKey, key)
	g.count(filed.selectors, -1)
	for tag := range filed.under {
		if delete(g.byTag[tag], key); len(g.byTag[tag]) == 0 {
			delete(g.byTag, tag)
		}
	}
}

func (g *Gateways) count(selectors [][]GatewayTag, n int) {
	for _, tags := range selectors {
		for _, tag := range tags {
			if g.tags[tag] += n; g.tags[tag] == 0 {
				delete(g.tags, tag)
			}
		}
	}
}

// Candidates returns a superset of the MeshGateways that the proxy may serve, in no order, some of them twice.
func (g *Gateways) Candidates(p *Proxy) (out []*resources.Resource) {
	for tag := range p.GatewayTags() {
		for _, r := range g.byTag[tag] {
			out = append(out, r)
		}
	}
	return out
}

// All yields the MeshGateways, in no order.
func (g *Gateways) All() iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) {
		for _, filed := range g.byKey {
			if !yield(filed.Resource) {
				return
			}
		}
	}
}
