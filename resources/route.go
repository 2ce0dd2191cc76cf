package resources

import "encoding/json"

// HTTPRouteRule is an item of a MeshHTTPRoute's `to[].rules`. Source: kuma-wire, section 4.
type HTTPRouteRule struct {
	Matches []HTTPRouteMatch `json:"matches,omitempty"`
	Default HTTPRouteConf    `json:"default,omitzero"`
}

// HTTPRouteMatch selects requests; all that it names must match.
type HTTPRouteMatch struct {
	Path        *RoutePathMatch   `json:"path,omitempty"`
	Method      string            `json:"method,omitempty"`
	QueryParams []RouteValueMatch `json:"queryParams,omitempty"`
	Headers     []RouteValueMatch `json:"headers,omitempty"`
}

// RoutePathMatch compares the path: Exact, PathPrefix or RegularExpression.
type RoutePathMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// RouteValueMatch compares a header or a query parameter; a missing type means Exact.
type RouteValueMatch struct {
	Type  string `json:"type,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// HTTPRouteConf says what happens to the requests of a rule.
type HTTPRouteConf struct {
	Filters     []HTTPRouteFilter `json:"filters,omitempty"`
	BackendRefs []BackendRef      `json:"backendRefs,omitempty"`
}

// HTTPRouteFilter changes a request or a response on its way; the field of the same name as Type is set.
type HTTPRouteFilter struct {
	Type                   string          `json:"type"`
	RequestHeaderModifier  json.RawMessage `json:"requestHeaderModifier,omitempty" shape:"object"`
	ResponseHeaderModifier json.RawMessage `json:"responseHeaderModifier,omitempty" shape:"object"`
	RequestRedirect        json.RawMessage `json:"requestRedirect,omitempty" shape:"object"`
	URLRewrite             json.RawMessage `json:"urlRewrite,omitempty" shape:"object"`
	RequestMirror          json.RawMessage `json:"requestMirror,omitempty" shape:"object"`
}

// TCPRouteRule is an item of a MeshTCPRoute's `to[].rules`.
type TCPRouteRule struct {
	Default TCPRouteConf `json:"default,omitzero"`
}

// TCPRouteConf says where connections go.
type TCPRouteConf struct {
	BackendRefs []BackendRef `json:"backendRefs,omitempty"`
}
