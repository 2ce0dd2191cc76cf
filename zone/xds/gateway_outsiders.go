package xds

import (
	"strings"

	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// outsideHeaders are expressions for the names of headers by which a client outside the mesh could control proxies,
// claim an identity or address, or name another host or path. A hyphen stands for every character that is neither a
// letter nor a digit, because applications behind CGI and WSGI treat them alike. The gateway sets its own values of
// these headers later.
var outsideHeaders = []string{
	"x-envoy-.*", "x-client-trace-id", "traceparent", "tracestate", "b3", "x-b3-.*",
	"forwarded", "x-real-ip", "x-original-.*", "x-rewrite-url", "script-name", "x-script-name",
	// Everything with x-forwarded- except x-forwarded-for, to which the gateway appends the client's address.
	"x-forwarded-(?:[^f].*|f[^o].*|fo[^r].*|for.+|f|fo)?",
}

// outsideExpressions returns outsideHeaders for all spellings, except the usual one of x-forwarded-for.
func outsideExpressions() []string {
	out := []string{"x[^a-z0-9-]forwarded[^a-z0-9]for", "x[^a-z0-9]forwarded[^a-z0-9-]for"}
	for _, e := range outsideHeaders {
		out = append(out, strings.ReplaceAll(e, "-", "[^a-z0-9]"))
	}
	return out
}

// withoutOutsideHeaders removes headers before the gateway reads any: before tracing, routing and Envoy's own headers.
func withoutOutsideHeaders() (*corev3.TypedExtensionConfig, error) {
	return removing(outsideExpressions())
}

// removing removes the headers whose names match an expression before anything reads them.
func removing(expressions []string) (*corev3.TypedExtensionConfig, error) {
	out := &earlyv3.HeaderMutation{}
	for _, e := range expressions {
		out.Mutations = append(out.Mutations, &mutationrulesv3.HeaderMutation{
			Action: &mutationrulesv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationrulesv3.HeaderMutation_RemoveOnMatch{
				KeyMatcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
					SafeRegex: &matcherv3.RegexMatcher{Regex: e}}}}}})
	}
	packed, err := pack(out)
	return &corev3.TypedExtensionConfig{Name: "envoy.http.early_header_mutation.header_mutation", TypedConfig: packed}, err
}
