package xds

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// maxPassing limits the matches of a proxy, over all its policies.
const maxPassing = 1024

// Names of the filter chains for redirected connections.
const (
	openChain    = "open"
	refusedChain = "refused"
	httpChain    = "http"
)

// passing describes the traffic that a proxy lets out of the mesh. Each match is a filter chain of its own, and the
// matcher that selects among them is separate. When matches come and go, Envoy updates the listener in place, and only
// connections of a removed chain drain.
type passing struct {
	same   *unvarying
	chains []*listenerv3.FilterChain
	routes []*resource
	// rules select the chain of a connection, in order, where unvarying.refuses does not.
	rules []chainRule
	// otherwise is the chain of all other connections; empty closes them.
	otherwise string
	// reads means that the choice needs the first bytes of a connection.
	reads bool
}

// chainRule is a filter chain with the conditions for its connections; all must hold.
type chainRule struct {
	chain    string
	prefixes []netip.Prefix
	port     uint32 // 0 is any
	// tls, or http, means that the connection uses it; name is a TLS server name.
	tls, http bool
	name      string
}

// passBy applies a merged MeshPassthrough. Without one, the mesh's setting applies.
func (t *target) passBy(rule matching.ProxyRule) error {
	var conf resources.PassthroughConf
	origin := "MeshPassthrough"
	if len(rule.Origins) > 0 {
		origin = rule.Origins[len(rule.Origins)-1].KRI().String()
	}
	if t.capture.port == 0 {
		if len(rule.Conf) > 0 {
			t.observed.problem(origin, "the Dataplane has no networking.transparentProxying.redirectPortOutbound, so its proxy sees no traffic that leaves the mesh")
		}
		return nil
	}
	switch err := json.Unmarshal(rule.Conf, &conf); {
	case len(rule.Conf) == 0 && t.closedMesh:
		conf.PassthroughMode = resources.PassthroughNone
	case len(rule.Conf) == 0:
		conf.PassthroughMode = resources.PassthroughAll
	case err != nil:
		t.observed.problem(origin, "the conf does not match its type, so nothing leaves the mesh: "+err.Error())
		conf = resources.PassthroughConf{}
	}
	p, err := t.newPassing(&conf, origin)
	if err != nil {
		return err
	}
	return t.captured(p)
}

func (t *target) newPassing(conf *resources.PassthroughConf, origin string) (*passing, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	p := &passing{same: same, chains: []*listenerv3.FilterChain{same.refused}}
	if problem := conf.CheckMode(); problem != "" {
		t.observed.problem(origin, "passthroughMode: "+problem+": nothing leaves the mesh")
	}
	switch conf.PassthroughMode {
	case resources.PassthroughAll:
		p.otherwise = openChain
		p.chains = append(p.chains, same.open)
		return p, nil
	case resources.PassthroughMatched:
		return p, p.match(conf.AppendMatch, func(at int, text string) {
			t.observed.problem(origin, fmt.Sprintf("appendMatch[%d]: %s", at, text))
		})
	}
	return p, nil
}

// match adds the chains of matches. Addresses come before names: bytes that an address lets through are not read as
// HTTP.
func (p *passing) match(matches []resources.PassthroughMatch, problem func(at int, text string)) error {
	known := map[string]bool{}
	domains := map[uint32][]string{} // of HTTP, by port
	for i := range matches {
		m := &matches[i]
		if i == maxPassing {
			problem(i, fmt.Sprintf("a proxy supports %d matches: this one and later ones are omitted", maxPassing))
			break
		}
		if text, field := m.Problem(); text != "" {
			problem(i, field+": "+text)
			continue
		}
		rule := chainRule{tls: m.ReadsTLS(), http: m.ReadsHTTP()}
		if m.Port != nil {
			rule.port = *m.Port
		}
		p.reads = p.reads || rule.tls || rule.http
		if m.Type == resources.PassthroughDomain {
			if rule.http {
				domains[rule.port] = append(domains[rule.port], m.Value)
				continue
			}
			rule.name = m.Value
		} else {
			prefix, _ := m.Prefix() // Problem has checked it
			rule.prefixes = []netip.Prefix{prefix}
		}
		rule.chain = rule.text()
		if known[rule.chain] {
			continue
		}
		known[rule.chain] = true
		chain, err := bytesChain(rule.chain, passCluster)
		if err != nil {
			return err
		}
		p.chains, p.rules = append(p.chains, chain), append(p.rules, rule)
	}
	return p.matchHTTP(domains)
}

// text names a rule.
func (r *chainRule) text() string {
	var parts []string
	switch {
	case r.tls:
		parts = append(parts, "tls")
	case r.http:
		parts = append(parts, "http")
	default:
		parts = append(parts, "tcp")
	}
	for _, prefix := range r.prefixes {
		parts = append(parts, prefix.String())
	}
	if r.name != "" {
		parts = append(parts, r.name)
	}
	if r.port != 0 {
		parts = append(parts, strconv.Itoa(int(r.port)))
	}
	return strings.Join(parts, " ")
}

// matchHTTP adds a chain for HTTP on each port that a domain names, and one for all others. Their routes select by
// Host, and replace no listener.
func (p *passing) matchHTTP(domains map[uint32][]string) error {
	ports := slices.Sorted(maps.Keys(domains))
	slices.Reverse(ports) // any port comes last
	for _, port := range ports {
		name := httpChain
		names := domains[port]
		if port != 0 {
			name = fmt.Sprintf("%s %d", httpChain, port)
			names = append(slices.Clone(names), domains[0]...)
		}
		chain, err := httpPassChain(name, p.same.router)
		if err != nil {
			return err
		}
		routes, err := httpPassRoutes(name, names)
		if err != nil {
			return err
		}
		p.chains, p.routes = append(p.chains, chain), append(p.routes, routes)
		p.rules = append(p.rules, chainRule{chain: name, port: port, http: true})
	}
	return nil
}

func httpPassChain(name string, router *anypb.Any) (*listenerv3.FilterChain, error) {
	manager, err := pack(&hcmv3.HttpConnectionManager{
		StatPrefix: "passthrough_" + name, CodecType: hcmv3.HttpConnectionManager_AUTO,
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		UpgradeConfigs:             []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(), RouteConfigName: passRoutes(name)}},
	})
	if err != nil {
		return nil, err
	}
	return &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{{
		Name:       managerFilter,
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
	}}}, nil
}

func passRoutes(chain string) string { return "passthrough:" + chain }

// httpPassRoutes lets requests for some hosts through, with any port after the name, and refuses all others.
func httpPassRoutes(chain string, domains []string) (*resource, error) {
	slices.Sort(domains)
	var routes []*routev3.Route
	for _, domain := range slices.Compact(domains) {
		routes = append(routes, &routev3.Route{
			Name: domain,
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"},
				Headers: []*routev3.HeaderMatcher{{Name: ":authority", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
					StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
						SafeRegex: &matcherv3.RegexMatcher{Regex: hostExpression(domain)}}},
				}}}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: passCluster}, Timeout: noLimit(),
			}},
		})
	}
	routes = append(routes, &routev3.Route{Name: refusedChain,
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 403}},
	})
	return newResource(kindRoute, passRoutes(chain), &routev3.RouteConfiguration{
		Name: passRoutes(chain), ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routev3.VirtualHost{{Name: chain, Domains: []string{"*"}, Routes: routes}},
	})
}

// hostExpression matches the Host of a domain, in any case and with any port.
func hostExpression(domain string) string {
	host := regexp.QuoteMeta(domain)
	if end, wild := strings.CutPrefix(domain, "*."); wild {
		host = `[^:/@\s]+\.` + regexp.QuoteMeta(end)
	}
	return "(?i)" + host + "(:[0-9]+)?"
}
