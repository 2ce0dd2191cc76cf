package matching

import (
	"fmt"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// MaySelect reports whether the policy could select the Dataplane, by its labels and names alone. It never returns
// false if Selects returns true, and costs less.
func MaySelect(p *Policy, dataplane *resources.Resource) bool {
	ref := p.Target
	switch ref.KindOrMesh() {
	case resources.KindDataplane:
		if ref.Name == "" {
			break
		}
		display := dataplane.DisplayName()
		if display != ref.Name && dataplane.Name != ref.Name && (!hashing.MayBeOf(ref.Name, display) || ref.Name !=
			hashing.Name(dataplane.Mesh, display, dataplane.Zone(), dataplane.HomeNamespace())) {
			return false
		}
	case resources.KindMeshGateway:
		if spec, err := resources.SpecAs[meshpb.Dataplane](dataplane); err != nil || !isBuiltin(spec) {
			return false
		}
	}
	for key, value := range ref.Labels {
		if have, ok := dataplane.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// WithoutHTTP returns the reason why a policy on requests has no effect on a proxy that it selects: none of the
// inbounds that it selects takes requests. It is empty if the policy has an effect, or could have one. The proxy must
// have the protocols of its inbounds (WithServices).
func WithoutHTTP(p *Policy, proxy *Proxy) string {
	if !resources.RequestsOnly(p.Resource.Type) || resources.LimitsConnections(p.Resource) || !p.Receives() ||
		len(p.items.to) > 0 {
		return ""
	}
	section := ""
	for i := range proxy.Inbounds {
		in := &proxy.Inbounds[i]
		if !SelectsInbound(p, proxy, in) {
			continue
		}
		if in.Protocol == HTTP {
			return ""
		}
		section = in.Section()
	}
	if section == "" {
		return ""
	}
	return fmt.Sprintf("a %s is about requests, and %s takes connections only: say its protocol (http, http2 or grpc), or select others",
		p.Resource.Type, proxy.kri(section))
}

// kri is that of one of the proxy's inbounds.
func (p *Proxy) kri(section string) resources.KRI {
	return resources.KRIOf(&resources.Resource{Key: p.Key, Labels: p.Labels}).WithSection(section)
}

// ByTags reports the items of `from` that mean clients by tags, which no identity carries.
func (p *Policy) ByTags() []Warning {
	if p.Resource.Descriptor().Policy == nil {
		return nil
	}
	if p.Resource.Type == resources.TypeMeshTrafficPermission {
		_, warnings := fromPermissions([]*Policy{p})
		return warnings
	}
	_, unread := asRules(p)
	return unread
}
