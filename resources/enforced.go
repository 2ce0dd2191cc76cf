package resources

import "fmt"

// enforced says which lists of a policy configure proxies in this version; a type that is not here configures none. What a server says
// of policies (rollout status, inspect, warnings) goes by this table; a test of zone/xds holds it against what proxies are sent.
var enforced = map[Type]PolicyShape{
	TypeMeshTrafficPermission: {From: true, Rules: true},
	TypeMeshHTTPRoute:         {To: true},
	TypeMeshTCPRoute:          {To: true},
	TypeMeshTimeout:           {To: true, From: true, Rules: true},
	TypeMeshRateLimit:         {From: true, Rules: true},
	TypeMeshFaultInjection:    {From: true, Rules: true},
	TypeMeshRetry:             {To: true},
	TypeMeshCircuitBreaker:    {To: true},
}

// Enforced returns the lists of a policy type that configure proxies in this version.
func Enforced(t Type) PolicyShape { return enforced[t] }

// Unenforced says of which parts of a policy this version makes nothing, and whether those are all that it has. Of what is no policy,
// and of what does not decode, it says nothing.
func Unenforced(r *Resource) (parts []string, all bool) {
	d := r.Descriptor()
	if d.Policy == nil {
		return nil, false
	}
	takes, some := enforced[d.Type]
	if !some {
		return []string{fmt.Sprintf("this version does not configure proxies by %s", d.Type)}, true
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return nil, false
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
			left := leftOutOfTo(d.Type, p.To)
			parts, effective = append(parts, left.parts...), effective || left.taken
		case list.written && list.takes:
			left := leftOutOfReceived(d.Type, p, list.name)
			parts, effective = append(parts, left.parts...), effective || left.taken
		case list.written:
			parts = append(parts, fmt.Sprintf("%s: this version does not configure proxies by the %q of a %s", top("spec").field(list.name), list.name, d.Type))
		}
	}
	return parts, len(parts) > 0 && !effective
}
