package resources

import "encoding/json"

// Policy is the common structure of all policy types. Confs stay JSON here: matching merges them as JSON, and only the
// code that generates Envoy configuration decodes them.
type Policy struct {
	// TargetRef selects proxies; nil means all that the policy's role lets it reach.
	TargetRef *TargetRef   `json:"targetRef,omitempty"`
	To        []PolicyTo   `json:"to,omitempty"`
	From      []PolicyFrom `json:"from,omitempty"`
	Rules     []PolicyRule `json:"rules,omitempty"`
	// Default is the conf of single-item policies, and sugar for one rule without matches elsewhere.
	Default json.RawMessage `json:"default,omitempty" shape:"rule"`
}

// PolicyTo is a conf for traffic to a destination.
type PolicyTo struct {
	TargetRef TargetRef       `json:"targetRef,omitzero"`
	Default   json.RawMessage `json:"default,omitempty" shape:"to"`
	// Hostnames and Rules are set on routes only.
	Hostnames []string        `json:"hostnames,omitempty"`
	Rules     json.RawMessage `json:"rules,omitempty" shape:"routes"`
}

// PolicyFrom is a conf for traffic from a group of clients. An empty TargetRef means Mesh.
type PolicyFrom struct {
	TargetRef TargetRef       `json:"targetRef,omitzero"`
	Default   json.RawMessage `json:"default,omitempty" shape:"from"`
}

// PolicyRule is a conf for the requests that an inbound receives.
type PolicyRule struct {
	Matches []json.RawMessage `json:"matches,omitempty" shape:"match"`
	Default json.RawMessage   `json:"default,omitempty" shape:"rule"`
}

// EffectiveRules returns the rules, with the shorthand `spec.default` written out as one rule without matches (seed
// 000, "Schema"). Single-item policies have no rules.
func (p *Policy) EffectiveRules() []PolicyRule {
	if len(p.Rules) == 0 && len(p.Default) > 0 {
		return []PolicyRule{{Default: p.Default}}
	}
	return p.Rules
}
