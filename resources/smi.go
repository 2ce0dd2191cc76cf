package resources

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kinds that resources of the Service Mesh Interface refer to.
const (
	KindServiceAccount = "ServiceAccount"
	KindHTTPRouteGroup = "HTTPRouteGroup"
	KindTCPRoute       = "TCPRoute"
)

// API groups of the Service Mesh Interface, in the form of apiVersion in documents.
const (
	groupTrafficAccess = "access.smi-spec.io"
	groupTrafficSpecs  = "specs.smi-spec.io"
)

// TrafficTarget allows service accounts to call another one. Access is additive: it only ever allows.
// Source: seed 003, "TrafficTarget".
type TrafficTarget struct {
	Destination TrafficSubject   `json:"destination"`
	Sources     []TrafficSubject `json:"sources,omitempty"`
	// Specs is how v1alpha1 spells Rules; a document has one of them.
	Specs []TrafficRule `json:"specs,omitempty"`
	Rules []TrafficRule `json:"rules,omitempty"`
}

// TrafficSubject is a service account. Namespace defaults to that of the resource.
type TrafficSubject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// Port of a destination limits the access to that port of its proxies; absent means every port.
	Port *uint32 `json:"port,omitempty"`
}

// TrafficRule refers to an HTTPRouteGroup or a TCPRoute. Matches are names of matches of a group. If there are none,
// the rule refers to all of them.
type TrafficRule struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Matches []string `json:"matches,omitempty"`
}

// EffectiveRules returns the rules, in either spelling.
func (t *TrafficTarget) EffectiveRules() []TrafficRule { return slices.Concat(t.Specs, t.Rules) }

// HTTPRouteGroup describes kinds of requests.
type HTTPRouteGroup struct {
	Matches []HTTPRouteGroupMatch `json:"matches,omitempty"`
}

// HTTPRouteGroupMatch is one kind of request. All of its fields must match.
type HTTPRouteGroupMatch struct {
	Name string `json:"name"`
	// PathRegex is an RE2 expression for the whole path; absent means any.
	PathRegex string `json:"pathRegex,omitempty"`
	// Methods may hold "*"; absent means any.
	Methods []string `json:"methods,omitempty"`
	// Headers are RE2 expressions for whole values, by header.
	Headers HeaderExpressions `json:"headers,omitempty"`
}

// HeaderExpressions maps headers to expressions. It decodes from an object, or from a list of objects as in v1alpha2.
type HeaderExpressions map[string]string

// UnmarshalJSON accepts an object and a list of objects.
func (h *HeaderExpressions) UnmarshalJSON(raw []byte) error {
	var list []map[string]string
	if json.Unmarshal(raw, &list) != nil {
		return json.Unmarshal(raw, (*map[string]string)(h))
	}
	*h = HeaderExpressions{}
	for _, one := range list {
		for name, expression := range one {
			if _, twice := (*h)[name]; twice {
				return fmt.Errorf("headers: %q appears twice: write one expression for it", name)
			}
			(*h)[name] = expression
		}
	}
	return nil
}

// TCPRoute describes connections.
type TCPRoute struct {
	Matches *TCPRouteMatches `json:"matches,omitempty"`
}

// TCPRouteMatches limit a TCPRoute to ports. None means all ports.
type TCPRouteMatches struct {
	Name  string   `json:"name,omitempty"`
	Ports []uint32 `json:"ports,omitempty"`
}

// isSMI reports whether the type belongs to the Service Mesh Interface. Resources of these types may have a namespace
// on the global too: it is the namespace of the service accounts that they name.
func isSMI(t Type) bool { return smiGroup(t) != "" }

// smiGroup returns the API group of the type, or "".
func smiGroup(t Type) string {
	switch t {
	case TypeTrafficTarget:
		return groupTrafficAccess
	case TypeHTTPRouteGroup, TypeTCPRoute:
		return groupTrafficSpecs
	}
	return ""
}

// apiVersionOf returns the group and version of the Kubernetes form. For the Service Mesh Interface it is the last
// published version.
func apiVersionOf(t Type) string {
	switch smiGroup(t) {
	case groupTrafficAccess:
		return groupTrafficAccess + "/v1alpha3"
	case groupTrafficSpecs:
		return groupTrafficSpecs + "/v1alpha4"
	}
	return apiVersion
}

// isSMIVersion reports whether version is a published version of the group. seed 003 uses a bare version without the
// group.
func isSMIVersion(t Type, version string) bool {
	group, name, qualified := strings.Cut(version, "/")
	if !qualified {
		group, name = smiGroup(t), version
	}
	return group == smiGroup(t) && slices.Contains([]string{"v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4", "v1beta1"},
		name)
}
