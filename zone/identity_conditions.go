package zone

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// identityConditions reports whether a MeshIdentity is active in this zone.
type identityConditions struct {
	store       store.Reader
	zone        string
	authorities *identity.Authorities
	publisher   *identity.Publisher
}

// of returns the conditions of a MeshIdentity, and nil for other types. Source: Kuma's KDS, the status of MeshIdentity.
func (c *identityConditions) of(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeMeshIdentity {
		return nil
	}
	effect := identity.EffectOf(r, c.zone)
	condition := func(kind string, holds bool, reason, message string) resources.Condition {
		out := resources.Condition{Type: kind, Status: resources.ConditionTrue, Reason: kind, Message: message}
		if !holds {
			out.Status, out.Reason = resources.ConditionFalse, reason
		}
		return out
	}
	if effect.Problem != "" {
		return []resources.Condition{condition(resources.ConditionReady, false, "NoIdentities",
			"it gives no workload an identity here: "+effect.Problem)}
	}
	if effect.Spire {
		return []resources.Condition{condition(resources.ConditionReady, true, "",
			"certificates come from the SPIRE agent beside each proxy")}
	}
	published := c.store.Snapshot().Get(identity.TrustKey(effect.MeshDomain, c.zone))
	trust := condition(resources.ConditionMeshTrustCreated, published != nil, "NotPublished", "")
	if published != nil {
		trust.Message = resources.KRIOf(published).String()
	} else if effect.Unpublished {
		trust.Reason, trust.Message = "Disabled",
			"provider.bundled.meshTrustCreation disables it: nobody trusts its certificates without a MeshTrust"
	}
	if problem := c.publisher.Problem(effect.MeshDomain); problem != "" {
		return []resources.Condition{trust, condition(resources.ConditionReady, false, "ProvidedCARefused", problem)}
	}
	signing, err := c.authorities.For(effect.MeshDomain)
	if err != nil {
		return []resources.Condition{trust, condition(resources.ConditionReady, false, "NotSigning",
			"no authority signs yet: the zone publishes it first, and it signs when all peers know it; causewayctl keys list shows the progress")}
	}
	return []resources.Condition{trust, condition(resources.ConditionReady, true, "",
		fmt.Sprintf("authority %s signs for %s", signing.ID(), signing.TrustDomain().Name()))}
}
