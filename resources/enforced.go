package resources

import "fmt"

// enforced maps a policy type to the lists that configure proxies in this version. A type without an entry configures
// none. Rollout status, inspect and warnings use this table. A test in zone/xds compares it with the configuration that
// proxies receive.
var enforced = map[Type]PolicyShape{
	TypeMeshTrafficPermission:     {From: true, Rules: true},
	TypeMeshHTTPRoute:             {To: true},
	TypeMeshTCPRoute:              {To: true},
	TypeMeshTLS:                   {From: true, Rules: true},
	TypeMeshTimeout:               {To: true, From: true, Rules: true},
	TypeMeshRateLimit:             {From: true, Rules: true},
	TypeMeshFaultInjection:        {From: true, Rules: true},
	TypeMeshRetry:                 {To: true},
	TypeMeshTrace:                 {Single: true},
	TypeMeshPassthrough:           {Single: true},
	TypeMeshMetric:                {Single: true},
	TypeMeshProxyPatch:            {Single: true},
	TypeMeshAccessLog:             {To: true, From: true, Rules: true},
	TypeMeshCircuitBreaker:        {To: true, From: true, Rules: true},
	TypeMeshLoadBalancingStrategy: {To: true},
	TypeMeshHealthCheck:           {To: true},
}

// Enforced returns the lists of a policy type that configure proxies in this version.
func Enforced(t Type) PolicyShape { return enforced[t] }

// Keys of problems in the metadata of a DataplaneInsight: settings that a proxyless gRPC server does not support,
// policies on whole proxies without effect on this one, and parts of a MeshGateway and its routes without effect.
const (
	ProblemProxyless = "proxyless"
	ProblemPolicies  = "policies"
	ProblemGateway   = "gateway"
	// ProblemOutbounds and ProblemInbounds cover the parts of its outbounds and inbounds that a proxy lacks, and
	// policies on them without effect.
	ProblemOutbounds = "outbounds"
	ProblemInbounds  = "inbounds"
)

// ProblemsCut ends the text of a DataplaneInsight's problem that exceeds the limit.
const ProblemsCut = "; and more than is kept"

// RequestsOnly reports whether a policy type's confs for inbound traffic apply to requests only, so that they have no
// effect on TCP inbounds.
func RequestsOnly(t Type) bool { return byRoute(t) }

// Unenforced returns the parts of a policy that have no effect in this version, and reports whether the policy has no
// other parts. It returns nothing for a resource that is not a policy or does not decode.
func Unenforced(r *Resource) (parts []string, all bool) {
	d := r.Descriptor()
	if d.Policy == nil {
		return nil, false
	}
	takes, some := enforced[d.Type]
	if !some {
		return []string{fmt.Sprintf("%s has no effect yet: this version does not configure proxies by it", d.Type)}, true
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return nil, false
	}
	onGateway := p.TargetRef.KindOrMesh() == KindMeshGateway
	if onGateway {
		takes.From, takes.Rules = false, false // a gateway has no inbounds
		if parts = listenersOnly(d.Type, p); len(parts) > 0 {
			return parts, true
		}
	}
	effective := false
	for _, list := range []struct {
		name           string
		written, takes bool
	}{
		{"to", len(p.To) > 0, takes.To},
		{"from", len(p.From) > 0, takes.From},
		{"rules", len(p.Rules) > 0, takes.Rules},
		{"default", len(p.Rules) == 0 && len(p.Default) > 0, takes.Rules || takes.Single},
	} {
		switch {
		case list.written && list.takes && list.name == "to":
			left := leftOutOfTo(d.Type, p.To, onGateway)
			parts, effective = append(parts, left.parts...), effective || left.taken
		case list.written && list.takes:
			left := leftOutOfReceived(d.Type, p, list.name)
			parts, effective = append(parts, left.parts...), effective || left.taken
		case list.written && onGateway && list.name != "to":
			parts = append(parts, fmt.Sprintf("%s: a gateway has no inbounds: use to", top("spec").field(list.name)))
		case list.written:
			parts = append(parts, fmt.Sprintf("%s: this version does not configure proxies by the %q of a %s",
				top("spec").field(list.name), list.name, d.Type))
		}
	}
	return parts, len(parts) > 0 && !effective
}
