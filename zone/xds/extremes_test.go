package xds

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// TestConfsThatEnvoyDoesNotTake: values that Envoy refuses, which a peer may send and an older version may have stored,
// cost a proxy that field and not its configuration.
func TestConfsThatEnvoyDoesNotTake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ  resources.Type
		conf string
	}{
		{resources.TypeMeshCircuitBreaker, `{outlierDetection: {interval: 0s}}`},
		{resources.TypeMeshCircuitBreaker, `{outlierDetection: {baseEjectionTime: 0s}}`},
		{resources.TypeMeshCircuitBreaker, `{outlierDetection: {maxEjectionPercent: 101, healthyPanicThreshold: 101, detectors: {failurePercentage: {threshold: 101}}}}`},
		{resources.TypeMeshCircuitBreaker, `{outlierDetection: {healthyPanicThreshold: "Inf", detectors: {successRate: {standardDeviationFactor: "Inf"}}}}`},
		{resources.TypeMeshHealthCheck, `{interval: 0s, timeout: 0s, noTrafficInterval: 0s, initialJitter: 0s, intervalJitter: 0s, unhealthyThreshold: 0, healthyThreshold: 0}`},
		{resources.TypeMeshHealthCheck, `{healthyPanicThreshold: -1}`},
		{resources.TypeMeshHealthCheck, `{healthyPanicThreshold: "many"}`},
		{resources.TypeMeshHealthCheck, `{healthyPanicThreshold: 101}`},
		{resources.TypeMeshHealthCheck, `{tcp: {send: "", receive: ["", "?"]}}`},
		{resources.TypeMeshHealthCheck, `{http: {path: "", expectedStatuses: [0, 99, 600]}}`},
		{resources.TypeMeshHealthCheck, `{http: {path: "/a b\n"}}`},
		{resources.TypeMeshHealthCheck, `{http: {requestHeadersToAdd: {set: [{name: "", value: a}]}}}`},
		{resources.TypeMeshHealthCheck, `{http: {requestHeadersToAdd: {add: [{name: "a b\n", value: a}]}}}`},
		{resources.TypeMeshHealthCheck, `{http: {requestHeadersToAdd: {add: [{name: a, value: "a\nb"}]}}}`},
		{resources.TypeMeshHealthCheck, `{grpc: {serviceName: "a\nb"}}`},
		{resources.TypeMeshHealthCheck, `{grpc: {authority: "a\nb"}}`},
		{resources.TypeMeshLoadBalancingStrategy, `{loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 0}}}`},
		{resources.TypeMeshLoadBalancingStrategy,
			`{loadBalancer: {type: RingHash, ringHash: {minRingSize: 0, maxRingSize: 4294967295}}}`},
		{resources.TypeMeshLoadBalancingStrategy, `{loadBalancer: {type: Maglev, maglev: {tableSize: 4}}}`},
		{resources.TypeMeshLoadBalancingStrategy, `{hashPolicies: [{type: Header}, {type: Header, header: {name: "a\n"}}, {type: Cookie, cookie: {name: a, ttl: -1s}}]}`},
		{resources.TypeMeshRetry, `{http: {numRetries: 1, rateLimitedBackOff: {maxInterval: 0s, resetHeaders: [{name: a, format: Seconds}]}}}`},
		{resources.TypeMeshRetry, `{http: {numRetries: 1, rateLimitedBackOff: {resetHeaders: [{format: Seconds}, {name: "a\n", format: Seconds}]}}}`},
		{resources.TypeMeshRetry, `{http: {numRetries: 1, retriableRequestHeaders: [{value: a}], retriableResponseHeaders: [{name: "a\n", value: a}]}}`},
		{resources.TypeMeshTimeout, `{connectionTimeout: 0s, idleTimeout: 0s, http: {requestTimeout: 0s, streamIdleTimeout: 0s, maxStreamDuration: 0s, maxConnectionDuration: 0s}}`},
	} {
		var conf any
		if err := yaml.Unmarshal([]byte(tt.conf), &conf); err != nil {
			t.Fatal(err)
		}
		policy := testResource(resources.Key{Type: tt.typ, Mesh: "default", Name: "p"}, nil, map[string]any{
			"to": []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "default": conf}},
		})
		if configWith(t, policy) == nil {
			t.Errorf("%s: of %s nothing is built", tt.typ, tt.conf)
		}
	}
}

// TestInboundRulesThatEnvoyDoesNotTake is TestConfsThatEnvoyDoesNotTake for what inbounds receive: one bad rule must
// keep neither the proxy's changes nor the policy's other rules out.
func TestInboundRulesThatEnvoyDoesNotTake(t *testing.T) {
	t.Parallel()
	const good = `{matches: [{path: {type: Exact, value: /good}}], default: {http: {requestTimeout: 7s}}}`
	for _, rule := range []string{
		`{matches: [{spiffeId: {type: Prefix, value: ""}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{path: {type: Exact, value: "/a\n"}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{path: {type: Prefix, value: "/a?b"}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{path: {type: Prefix, value: "a"}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{path: {type: RegularExpression, value: ""}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{path: {type: RegularExpression, value: "("}}], default: {http: {requestTimeout: 1s}}}`,
		`{matches: [{method: ["("]}], default: {http: {requestTimeout: 1s}}}`,
		`{default: {http: {requestTimeout: 9999999999999999h}}}`,
		`{default: {http: {requestTimeout: -1s, streamIdleTimeout: -1s, maxStreamDuration: -1s}}}`,
	} {
		var rules any
		if err := yaml.Unmarshal([]byte("["+rule+","+good+"]"), &rules); err != nil {
			t.Fatal(err)
		}
		config := configWith(t, testResource(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "p"}, nil,
			map[string]any{"rules": rules}))
		if config == nil {
			t.Errorf("of %s nothing is built", rule)
		} else if !strings.Contains(string(config), "/good") {
			t.Errorf("with %s another rule of the policy is lost", rule)
		}
	}
}

// TestRoutesOfOneServiceAreBounded: the owner of a service has its clients' proxies, which are others', take so many
// bytes of routes and no more; what comes first holds.
func TestRoutesOfOneServiceAreBounded(t *testing.T) {
	t.Parallel()
	var matches []any
	for i := range 9000 { // each is a route with all of the rule's conf
		matches = append(matches, map[string]any{"path": map[string]any{"type": "Exact", "value": fmt.Sprintf("/%04d", i)}})
	}
	rules := []any{map[string]any{"matches": matches, "default": map[string]any{"filters": []any{map[string]any{
		"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"set": []any{
			map[string]any{"name": "a", "value": strings.Repeat("x", 1000)}}}}}}}}
	spec := map[string]any{"to": []any{map[string]any{
		"targetRef": map[string]any{"kind": "MeshService", "name": "backend"}, "rules": rules}}}
	config := string(configWith(t, testResource(resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "p"}, nil, spec)))
	if got := strings.Count(config, strings.Repeat("x", 1000)); got < 1000 || got*1000 > maxRouteBytes {
		t.Errorf("%d routes of 1 KB each, want 1000 to %d", got, maxRouteBytes/1000)
	}
	if !strings.Contains(config, "/0000") {
		t.Error("the first rule is lost")
	}
}

// TestRoutesOfOneInboundAreBounded is the same for what an inbound receives: the zone holds the configuration of all.
func TestRoutesOfOneInboundAreBounded(t *testing.T) {
	t.Parallel()
	var matches []any
	for i := range 1000 {
		matches = append(matches, map[string]any{"path": map[string]any{"type": "Exact", "value": fmt.Sprintf("/%04d", i)}})
	}
	long := strings.Repeat("x", 1000)
	var headers []any
	for i := range 10 {
		headers = append(headers, map[string]any{"name": fmt.Sprint("h", i), "value": long})
	}
	spec := map[string]any{"rules": []any{map[string]any{"matches": matches, "default": map[string]any{"local": map[string]any{
		"http": map[string]any{"requestRate": map[string]any{"num": 1, "interval": "1s"}, "onRateLimit": map[string]any{
			"headers": map[string]any{"set": headers}}}}}}}}
	config := string(configWith(t, testResource(resources.Key{Type: resources.TypeMeshRateLimit, Mesh: "default", Name: "p"}, nil, spec)))
	if config == "" {
		t.Fatal("nothing is built")
	}
	if most := 2 * maxRouteBytes; len(config) > most {
		t.Errorf("1,000 routes of 10 KB each are %d bytes, want at most %d", len(config), most)
	}
}
