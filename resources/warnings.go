package resources

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Warnings returns warnings about parts of r that are valid but rarely intended. Each names its field. Most resources
// have none.
func Warnings(r *Resource) []string {
	switch r.Type {
	case TypeDataplane:
		return dataplaneWarnings(r)
	case TypeMeshTrust:
		return trustWarnings(r)
	case TypeMeshGateway:
		return append(UnservedParts(r), inlineWarnings(r)...)
	case TypeMeshExternalService:
		return append(externalWarnings(r), inlineWarnings(r)...)
	}
	if r.Descriptor().Policy == nil {
		return nil
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return nil
	}
	out, _ := Unenforced(r)
	out = append(out, producerWarnings(p, r)...)
	if r.Type != TypeMeshTrafficPermission {
		return out
	}
	for i, rule := range PermissionRules(r) {
		at := top("spec").field("default")
		if len(p.Rules) > 0 {
			at = top("spec").field("rules").item(i).field("default")
		}
		out = append(out, openWarnings(rule.Conf.Allow, at.field("allow"))...)
		out = append(out, prefixWarnings(rule.Conf.Allow, at.field("allow"))...)
		out = append(out, prefixWarnings(rule.Conf.AllowWithShadowDeny, at.field("allowWithShadowDeny"))...)
	}
	return out
}

// ServerFirstWarning describes the limits of enforcement for an inbound with TagServerFirst.
const ServerFirstWarning = "the application speaks first: a client is judged once, after its handshake, and the application sees connections of silent clients"

func dataplaneWarnings(r *Resource) []string {
	dp, err := SpecAs[meshpb.Dataplane](r)
	if err != nil {
		return nil
	}
	out := append(captureWarnings(dp), listenerWarnings(dp)...)
	out = append(out, outboundWarnings(dp)...)
	for i, in := range dp.GetNetworking().GetInbound() {
		if in.GetTags()[TagServerFirst] == "true" {
			out = append(out, top("networking").field("inbound").item(i).field("tags").field(TagServerFirst).String()+
				": "+ServerFirstWarning)
		}
	}
	return out
}

// NamelessOutbound says that a proxy does not listen for an outbound.
const NamelessOutbound = "names no service, so the proxy does not listen: set backendRef, as in {kind: MeshService, name: backend}, or the tag " + TagService

// outboundWarnings warns of outbounds that name nothing.
func outboundWarnings(dp *meshpb.Dataplane) []string {
	var out []string
	for i, o := range dp.GetNetworking().GetOutbound() {
		if o.GetBackendRef() == nil && o.GetTags()[TagService] == "" {
			out = append(out, top("networking").field("outbound").item(i).String()+": "+NamelessOutbound)
		}
	}
	return out
}

// externalWarnings warns of a service that no proxy can send to.
func externalWarnings(r *Resource) []string {
	spec, err := SpecAs[MeshExternalService](r)
	if err != nil {
		return nil
	}
	if err := spec.Unreachable(); err != nil {
		return []string{fmt.Sprintf("%s: no proxy sends to it: %v", top("spec"), err)}
	}
	return nil
}

// trustWarnings warns of a MeshTrust with a trust domain that is not its owner's. A zone's MeshTrust counts only for
// that zone's trust domains. Proxies trust one from the global in addition to the zone's own authorities.
func trustWarnings(r *Resource) []string {
	spec, err := SpecAs[MeshTrust](r)
	if err != nil {
		return nil
	}
	at := top("spec").field("trustDomain")
	switch zone := r.Zone(); {
	case zone != "" && !IsTrustDomainOf(spec.TrustDomain, zone):
		return []string{fmt.Sprintf("%s: no proxy trusts it: zone %s may only speak for *.%s%s, not for %s, unless a MeshIdentity of the global grants that: write it in that zone, or on the global",
			at, zone, zone, TrustDomainSuffix, spec.TrustDomain)}
	case zone == "" && strings.HasSuffix(spec.TrustDomain, TrustDomainSuffix):
		return []string{fmt.Sprintf("%s: %s looks like the trust domain of a zone, which publishes its own authorities: whoever has their keys can impersonate any workload of that zone",
			at, spec.TrustDomain)}
	}
	return nil
}

// EveryIdentity is a prefix of every SPIFFE ID.
const EveryIdentity = "spiffe://"

// openWarnings warns of allows that seem to limit something but do not: an entry that names no identity, and a path
// that is the prefix of every path.
func openWarnings(entries []PermissionMatch, at *fieldPath) []string {
	var out []string
	for i, m := range entries {
		if m.SpiffeID == nil {
			out = append(out, fmt.Sprintf("%s: names no spiffeId, so it allows every client: name the identity that may", at.item(i)))
		}
		if m.Path != nil && m.Path.Type == MatchPrefix && m.Path.Value == "/" {
			out = append(out, fmt.Sprintf("%s: every path begins with /: leave the path out to mean all, or name one",
				at.item(i).field("path")))
		}
	}
	return out
}

// prefixWarnings warns of allowed prefixes that are too wide. A prefix that ends inside a segment, such as
// `ns/observability`, also allows `ns/observability-evil`. A prefix without a trust domain allows every identity that
// the mesh trusts.
func prefixWarnings(entries []PermissionMatch, at *fieldPath) []string {
	var out []string
	for i, m := range entries {
		if m.SpiffeID == nil || m.SpiffeID.Type != MatchPrefix {
			continue
		}
		text := ""
		switch value := m.SpiffeID.Value; {
		case value == EveryIdentity:
			text = "allows every identity of every trust domain: name a trust domain to mean its identities"
		case !strings.HasSuffix(value, "/"):
			text = "ends inside a segment and allows every longer name too: end it with / to mean that segment only"
		}
		if text != "" {
			out = append(out, fmt.Sprintf("%s: the prefix %q %s", at.item(i).field("spiffeId").field("value"),
				m.SpiffeID.Value, text))
		}
	}
	return out
}

// producerWarnings warns of a producer policy for a MeshMultiZoneService. A producer policy affects only traffic to
// services of its own zone and namespace, and a MeshMultiZoneService has neither.
func producerWarnings(p *Policy, r *Resource) []string {
	if r.Labels[LabelPolicyRole] != string(RoleProducer) {
		return nil
	}
	var out []string
	for i := range p.To {
		if p.To[i].TargetRef.Kind == KindMeshMultiZoneService {
			out = append(out, fmt.Sprintf("%s: a MeshMultiZoneService is not in a namespace of a zone, so this producer policy does not reach it: give the namespace of the system, which makes it a consumer policy",
				top("spec").field("to").item(i).field("targetRef")))
		}
	}
	return out
}
