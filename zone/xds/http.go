package xds

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// streamIdleTimeout ends requests that have had no traffic for this long.
const streamIdleTimeout = time.Hour

// connectionManager judges each request before it reaches the application. It normalises paths before it matches them,
// and refuses paths that cannot be normalised (envoy-rbac, "Path and method").
func connectionManager(in *inbound) (*hcmv3.HttpConnectionManager, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	idle, err := idleFilters()
	if err != nil {
		return nil, err
	}
	return &hcmv3.HttpConnectionManager{
		StatPrefix:                   in.name(),
		AccessLog:                    in.logs,
		CodecType:                    hcmv3.HttpConnectionManager_AUTO,
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_REJECT_REQUEST,
		ForwardClientCertDetails:     hcmv3.HttpConnectionManager_SANITIZE,
		ServerHeaderTransformation:   hcmv3.HttpConnectionManager_PASS_THROUGH,
		StreamIdleTimeout:            durationpb.New(streamIdleTimeout),

		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{same.odd},
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: in.httpFilter(), ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: discovered(same.denyHTTP)}},
			idle[0], idle[1],
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: same.router}},
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(),
			RouteConfigName: in.name()}},
	}, nil
}

// idleFilters do nothing unless a route configures them (received.go). They are the same for all inbounds, and made
// once.
var idleFilters = sync.OnceValues(func() (out [2]*hcmv3.HttpFilter, err error) {
	for i, filter := range []struct {
		name   string
		config message
	}{{faultFilter, &faultv3.HTTPFault{}}, {limitFilter, &limitv3.LocalRateLimit{StatPrefix: limitStat}}} {
		packed, err := pack(filter.config)
		if err != nil {
			return out, err
		}
		out[i] = &hcmv3.HttpFilter{Name: filter.name, Disabled: true,
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed}}
	}
	return out, nil
})

// unregistered answers 400 to a method that is not registered, or not spelled as registered. Envoy passes any over
// HTTP/2, and applications may treat `delete` as DELETE. No rule judges such a request, so none can allow it.
func unregistered(in *inbound) (*routev3.Route, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	unasked := map[string]*anypb.Any{}
	for _, side := range in.judged() {
		unasked[side.httpFilter()] = same.unasked
	}
	return &routev3.Route{
		Name: "unregistered-method",
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"},
			Headers:       same.unregistered,
		},
		Action:               &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusBadRequest}},
		TypedPerFilterConfig: unasked,
	}, nil
}

// unregisteredMethods returns matchers for a method that matches none of the expressions.
func unregisteredMethods() []*routev3.HeaderMatcher {
	var none []*routev3.HeaderMatcher
	for _, expression := range registeredMethods() {
		registered := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: expression}}}
		none = append(none, &routev3.HeaderMatcher{
			Name: ":method", InvertMatch: true,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: registered},
		})
	}
	return none
}

// routeRegexBytes keeps an expression of a route below the 100 steps above which Envoy refuses it.
const routeRegexBytes = 60

// registeredMethods returns expressions for a few registered methods each, common ones first: for most requests Envoy
// evaluates one.
func registeredMethods() []string {
	out := []string{"DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT"}
	for _, method := range resources.RegisteredMethods() {
		switch last := &out[len(out)-1]; {
		case slices.Contains(strings.Split(out[0], "|"), method):
		case len(*last)+len(method) < routeRegexBytes:
			*last += "|" + method
		default:
			out = append(out, method)
		}
	}
	return out
}

// discovered returns a filter that comes by ECDS. Until it arrives, Envoy uses a substitute of its type: for
// permissions, one that denies.
func discovered(until *anypb.Any) *corev3.ExtensionConfigSource {
	return &corev3.ExtensionConfigSource{
		ConfigSource:                     overADS(),
		DefaultConfig:                    until,
		ApplyDefaultConfigWithoutWarming: true,
		TypeUrls:                         []string{until.TypeUrl},
	}
}
