package matching

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// anyTag is the value in a gateway's selector that every value of the tag meets.
const anyTag = "*"

// WithGateways returns the proxy with the one MeshGateway of these that it serves; p itself if that changes nothing. The
// gateway whose selector names most tags wins, then one of the proxy's zone over one of the global, then the one that
// wins in the order of policies, by its display name. systemNamespace is that of the proxy's zone.
func (p *Proxy) WithGateways(all []*resources.Resource, systemNamespace string) *Proxy {
	var best *resources.Resource
	var bestOrder gatewayOrder
	for _, g := range all {
		tags := p.servesGateway(g, systemNamespace)
		if tags == 0 {
			continue
		}
		order := gatewayOrder{tags, g.Zone() != "", g.DisplayName(), g.Name}
		if best == nil || order.before(bestOrder) {
			best, bestOrder = g, order
		}
	}
	if best == p.served {
		return p
	}
	out := *p
	out.served = best
	switch {
	case best == nil:
		out.servedAs = nil
	case p.served == nil || best.Key != p.served.Key || !maps.Equal(best.Labels, p.served.Labels):
		out.servedAs = namesOf(best)
	}
	return &out
}

// MeetsAlike reports whether the proxy meets the same Conditions as another one of its Dataplane, which may serve another
// MeshGateway.
func (p *Proxy) MeetsAlike(o *Proxy) bool { return slices.Equal(p.servedAs, o.servedAs) }

// MayServe reports whether the proxy may serve a gateway: another one may win. It serves none that is nil.
func (p *Proxy) MayServe(g *resources.Resource, systemNamespace string) bool {
	return g != nil && p.servesGateway(g, systemNamespace) > 0
}

// mayServe is MayServe for a Dataplane, of which it reads only what MayServe needs: there are many.
func mayServe(dataplane, gateway *resources.Resource, systemNamespace string) bool {
	spec, err := resources.SpecAs[meshpb.Dataplane](dataplane)
	if err != nil || !isBuiltin(spec) {
		return false
	}
	p := Proxy{Key: dataplane.Key, Zone: dataplane.Zone(), Namespace: dataplane.HomeNamespace(), builtin: true,
		gatewayTags: spec.GetNetworking().GetGateway().GetTags()}
	return p.MayServe(gateway, systemNamespace)
}

// isBuiltin reports whether a MeshGateway configures the proxy of a Dataplane.
func isBuiltin(dataplane *meshpb.Dataplane) bool {
	gateway := dataplane.GetNetworking().GetGateway()
	return gateway != nil && gateway.GetType() == meshpb.Dataplane_Networking_Gateway_BUILTIN
}

// Served returns the MeshGateway that the proxy serves, according to WithGateways; nil if there is none.
func (p *Proxy) Served() *resources.Resource { return p.served }

// BuiltinGateway reports whether a MeshGateway configures the proxy.
func (p *Proxy) BuiltinGateway() bool { return p.builtin }

// gatewayTag returns the value that a gateway's selector sees for a tag of the proxy.
func (p *Proxy) gatewayTag(key string) string { return p.tag(p.gatewayTags, key) }

type gatewayOrder struct {
	tags          int
	ofZone        bool
	display, name string
}

func (a gatewayOrder) before(b gatewayOrder) bool {
	if a.tags != b.tags {
		return a.tags > b.tags
	}
	if a.ofZone != b.ofZone {
		return a.ofZone
	}
	return cmp.Or(cmp.Compare(a.display, b.display), cmp.Compare(a.name, b.name)) < 0
}

// servesGateway returns how many tags the best matching selector of a gateway has; 0 if the proxy does not serve it. A
// gateway has certificates with their keys, so a proxy in an owner's namespace serves one only if a selector names the
// namespace: the owner alone controls the tags.
func (p *Proxy) servesGateway(g *resources.Resource, systemNamespace string) (best int) {
	if !p.builtin || g.Mesh != p.Key.Mesh || g.Zone() != "" && g.Zone() != p.Zone {
		return 0
	}
	spec, err := resources.SpecAs[meshpb.MeshGateway](g)
	if err != nil {
		return 0
	}
	owned := p.Namespace != "" && p.Namespace != systemNamespace
	for _, s := range spec.GetSelectors() {
		if _, named := s.GetMatch()[resources.LabelNamespace]; owned && !named {
			continue
		}
		if p.meetsTags(s.GetMatch()) {
			best = max(best, len(s.GetMatch()))
		}
	}
	return best
}

func (p *Proxy) meetsTags(match map[string]string) bool {
	for key, want := range match {
		if have := p.gatewayTag(key); have == "" || want != anyTag && have != want {
			return false
		}
	}
	return true
}

// selectsGateway reports whether a policy of kind MeshGateway means the gateway that the proxy serves. Routes decide
// what enters the mesh, so only those of operators count. Tags select listeners, which only routes can. Source: seed
// 004, "Referencing MeshGateway".
func selectsGateway(p *Policy, proxy *Proxy) bool {
	if proxy.served == nil || !meansGateway(p, proxy.served, proxy.servedAs) {
		return false
	}
	if isRouteType(p.Resource.Type) {
		return p.Role == resources.RoleSystem
	}
	return len(p.Target.Tags) == 0
}

// MeshKey returns the key of the rule for everything that no item names.
func MeshKey(mesh string) ResourceKey { return meshKey(mesh) }

func onGateway(p *Policy) bool { return p.Target.KindOrMesh() == resources.KindMeshGateway }

// GatewayRoutes returns the rules of the routes for the gateway that a proxy serves, in the order in which they are
// tried on a common host: more specific matches first, among equals those of the route that comes last in the order of
// Compare. in.Type is the type of the routes. ListenerTags returns the listeners of each.
func GatewayRoutes(in ToInput) (rules []RouteRule) {
	selecting, _ := enforced(in.Type, in.Policies, func(p *Policy) bool {
		return len(p.items.to) > 0 && onGateway(p) && Selects(p, in.Proxy)
	})
	b := newToBuilder(in.Destinations, in.Proxy.Key.Mesh)
	b.read(selecting)
	for _, at := range slices.Backward(b.onMesh) {
		rules = append(rules, routeRules(b.items[at])...)
	}
	sortByMatch(rules, func(r *RouteRule) json.RawMessage { return r.Match })
	return rules
}

// ListenerTags returns the tags that the rule requires of a listener.
func (r *RouteRule) ListenerTags() map[string]string { return r.Origin.Policy.Target.Tags }

// gatewayProblems returns the problems of a targetRef of kind MeshGateway: a missing gateway, and items of a route that
// are not for a gateway's traffic. Source: seed 004, "Referencing MeshGateway".
func (x *Destinations) gatewayProblems(p *Policy) (out []Warning) {
	if !onGateway(p) {
		return nil
	}
	meant := func(g *resources.Resource) bool { return meansGateway(p, g, namesOf(g)) }
	if !slices.ContainsFunc(x.gateways[p.Resource.Mesh], meant) {
		out = append(out, Warning{Policy: p.KRI, Field: "targetRef", Text: describe(p.Target) + " resolves to nothing"})
	}
	if !isRouteType(p.Resource.Type) {
		return out
	}
	if p.Role != resources.RoleSystem {
		out = append(out, Warning{Policy: p.KRI, Field: "targetRef.kind",
			Text: "a route for a gateway lives in the system namespace: this one has no effect"})
	}
	for i := range p.items.to {
		if it := &p.items.to[i]; it.ref.KindOrMesh() != resources.KindMesh {
			out = append(out, it.referenceProblem("a route of a gateway is for kind Mesh, so this item has no effect"))
		}
	}
	return out
}

// meansGateway reports whether the targetRef of p means g, by one of its names or its labels: a gateway of the global,
// or one of the policy's own zone. A policy of the global can mean a gateway of any zone, because gateways belong to no
// namespace.
func meansGateway(p *Policy, g *resources.Resource, names []string) bool {
	if g.Zone() != "" && p.zone != "" && g.Zone() != p.zone {
		return false
	}
	if p.Target.Name == "" {
		return carries(g.Labels, p.Target.Labels)
	}
	return slices.Contains(names, p.Target.Name)
}

// namesOf returns the names by which policies may mean a MeshGateway: its display name, its name here, and its hashed
// name. Some of them may be the same.
func namesOf(g *resources.Resource) []string {
	display := g.DisplayName()
	return []string{display, g.Name, hashing.Name(g.Mesh, display, g.Zone(), g.HomeNamespace())}
}
