package matching

import (
	"slices"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// gatewayProblems returns the problems of a targetRef of kind MeshGateway. Even if the gateway exists, Causeway does
// not configure gateways, so the policy selects no proxy. This must not stay silent. Source: seed 004, "Referencing
// MeshGateway".
func (x *Destinations) gatewayProblems(p *Policy) []Warning {
	if p.Target.KindOrMesh() != resources.KindMeshGateway {
		return nil
	}
	meant := func(g *resources.Resource) bool { return meansGateway(p, g) }
	if !slices.ContainsFunc(x.gateways[p.Resource.Mesh], meant) {
		return []Warning{{Policy: p.KRI, Field: "targetRef", Text: describe(p.Target) + " resolves to nothing"}}
	}
	return []Warning{{Policy: p.KRI, Field: "targetRef.kind",
		Text: "gateways are not configured: the policy is kept and synced, and shapes no traffic"}}
}

// meansGateway reports whether the targetRef of p means g, by its display name, its hashed name or its labels: a
// gateway of the global, or one of the policy's own zone. A policy of the global can mean a gateway of any zone,
// because gateways belong to no namespace.
func meansGateway(p *Policy, g *resources.Resource) bool {
	if g.Zone() != "" && p.zone != "" && g.Zone() != p.zone {
		return false
	}
	name := p.Target.Name
	if name == "" {
		return carries(g.Labels, p.Target.Labels)
	}
	return name == g.DisplayName() || name == g.Name || name == hashing.Name(g.Mesh, g.DisplayName(), g.Zone(),
		g.HomeNamespace())
}
