package resources

import "encoding/json"

// HTTPRouteRule is an item of a MeshHTTPRoute's `to[].rules`, in Kuma's format.
type HTTPRouteRule struct {
	Matches []HTTPRouteMatch `json:"matches,omitempty"`
	Default HTTPRouteConf    `json:"default,omitzero"`
}

// HTTPRouteMatch selects requests. All of its fields must match.
type HTTPRouteMatch struct {
	Path        *RoutePathMatch   `json:"path,omitempty"`
	Method      string            `json:"method,omitempty"`
	QueryParams []RouteValueMatch `json:"queryParams,omitempty"`
	Headers     []RouteValueMatch `json:"headers,omitempty"`
}

// RoutePathMatch compares the path. Type is Exact, PathPrefix or RegularExpression.
type RoutePathMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// RouteValueMatch compares a header or a query parameter. An absent Type means Exact.
type RouteValueMatch struct {
	Type  string `json:"type,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// HTTPRouteConf configures the handling of the requests of a rule.
type HTTPRouteConf struct {
	Filters     []HTTPRouteFilter `json:"filters,omitempty"`
	BackendRefs []BackendRef      `json:"backendRefs,omitempty"`
}

// HTTPRouteFilter changes a request or a response. The field with the same name as Type is set.
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

// TCPRouteConf configures the destinations of connections.
type TCPRouteConf struct {
	BackendRefs []BackendRef `json:"backendRefs,omitempty"`
}
