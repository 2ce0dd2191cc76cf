package zone_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
)

// handler runs an application behind a proxy, with a MeshService of its own. The Dataplane has the label app.
func (w *world) handler(name, app string, h http.HandlerFunc) *envoy {
	w.t.Helper()
	srv := httptest.NewServer(h)
	w.t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: %s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: http}]}}
---
{type: MeshService, mesh: default, name: %[2]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[2]s}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}}`,
		name, app, freePort(w.t), srv.Listener.Addr().(*net.TCPAddr).Port))
	return w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
}

func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%s %s", text, r.URL.Path) }
}

func (w *world) allowAll() {
	w.t.Helper()
	w.apply(fmt.Sprintf(allowCaller, w.home.Zone))
}

func (w *world) remove(t resources.Type, name string) {
	w.t.Helper()
	_, err := w.store.Apply(w.t.Context(),
		store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: t, Mesh: "default", Name: name}}}})
	must(w.t, err)
}

func ok(port int, path string) func() bool {
	return func() bool { code, _ := plain(port, path); return code == http.StatusOK }
}

// TestRouteHasItsOwnTimeout: requests to a route get the route's timeout, and all others the service's. None of the
// changes moves a listener or a cluster.
func TestRouteHasItsOwnTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/slow") {
			time.Sleep(600 * time.Millisecond)
		}
	})
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	if code, _ := plain(ports[0], "/slow"); code != http.StatusOK {
		t.Fatalf("without a timeout: %d", code)
	}
	const moved = "listener_manager.listener_(added|modified)|cluster_manager.cluster_(added|modified)"
	before := fmt.Sprint(e.counted(moved))
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: v2, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [
  {matches: [{path: {type: PathPrefix, value: /v2}}], default: {backendRefs: [{kind: MeshService, name: backend, port: 80}]}}]}]}}
---
{type: MeshTimeout, mesh: default, name: of-route, spec: {to: [{targetRef: {kind: MeshHTTPRoute, name: v2}, default: {http: {requestTimeout: 200ms}}}]}}`)
	eventually(t, "the route's timeout", func() bool { code, _ := plain(ports[0], "/v2/slow"); return code == http.StatusGatewayTimeout })
	if code, _ := plain(ports[0], "/slow"); code != http.StatusOK {
		t.Errorf("off the route: %d", code)
	}
	w.apply(`{type: MeshTimeout, mesh: default, name: of-service, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {http: {requestTimeout: 100ms}}}]}}`)
	eventually(t, "the service's timeout", func() bool { code, _ := plain(ports[0], "/slow"); return code == http.StatusGatewayTimeout })
	w.apply(`{type: MeshTimeout, mesh: default, name: of-route, spec: {to: [{targetRef: {kind: MeshHTTPRoute, name: v2}, default: {http: {requestTimeout: 5s}}}]}}`)
	eventually(t, "the route's again", ok(ports[0], "/v2/slow"))
	if after := fmt.Sprint(e.counted(moved)); after != before {
		t.Errorf("policies moved listeners or clusters: %s, then %s", before, after)
	}
	e.refusedNothing()
}

// TestClusterConfsReachEnvoy: a changed cluster is soon in use, with its endpoints.
func TestClusterConfsReachEnvoy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", answers("backend"))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	w.apply(`{type: MeshTimeout, mesh: default, name: connect, spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 1234ms}}]}}`)
	eventually(t, "the new cluster", func() bool {
		return strings.Contains(e.get("/config_dump?resource=dynamic_active_clusters"), "1.234s")
	})
	// Envoy uses a cluster that receives no endpoints after waiting 15 s for them, and counts that.
	for name, waited := range e.counted(`^cluster\..*init_fetch_timeout`) {
		if waited != "0" {
			t.Errorf("%s is %s: warm only because Envoy did not wait any longer for the endpoints", name, waited)
		}
	}
	if code, _ := plain(ports[0], "/"); code != http.StatusOK {
		t.Errorf("got %d", code)
	}
	e.refusedNothing()
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var n atomic.Int64
	w.handler("backend", "backend", func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/flaky" && n.Add(1)%3 != 0 {
			out.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	if code, _ := plain(ports[0], "/flaky"); code != http.StatusServiceUnavailable {
		t.Fatalf("without retries: %d", code)
	}
	w.apply(`{type: MeshRetry, mesh: default, name: retry, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 3, retryOn: ["503"], backOff: {baseInterval: 5ms, maxInterval: 10ms}}}}]}}`)
	eventually(t, "retries", ok(ports[0], "/flaky"))
	for range 10 {
		if code, _ := plain(ports[0], "/flaky"); code != http.StatusOK {
			t.Errorf("got %d in spite of retries", code)
		}
	}
	e.refusedNothing()
}

// TestRetryElsewhere: what is sent again goes to an endpoint that has not had it, without a word about it in the
// policy.
func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("good", "backend", answers("good"))
	w.handler("bad", "backend",
		func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) })
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "both to be asked", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable })
	w.apply(`{type: MeshRetry, mesh: default, name: once, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 1, retryOn: ["503"]}}}]}}`)
	all := func() bool {
		for range 40 {
			if code, _ := plain(ports[0], "/"); code != http.StatusOK {
				return false
			}
		}
		return true
	}
	eventually(t, "every request to be answered by the second attempt", all)
	w.apply(`{type: MeshRetry, mesh: default, name: once, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {
  numRetries: 1, retryOn: ["503"], hostSelection: [{predicate: OmitPreviousPriorities, updateFrequency: 1}], hostSelectionMaxAttempts: 3}}}]}}`)
	eventually(t, "the proxy to have taken it", func() bool {
		return strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), `"update_frequency": 1`)
	})
	e.refusedNothing()
}

// TestOutlierDetection: an endpoint that fails gets no more requests.
func TestOutlierDetection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("good", "backend", answers("good"))
	w.handler("bad", "backend",
		func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusInternalServerError) })
	w.allowAll()
	w.apply(`{type: MeshCircuitBreaker, mesh: default, name: outlier, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {
  outlierDetection: {interval: 100ms, baseEjectionTime: 60s, maxEjectionPercent: 50, healthyPanicThreshold: 0, detectors: {totalFailures: {consecutive: 3}}}}}]}}`)
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "the bad one ejected", func() bool {
		_, _ = plain(ports[0], "/")
		for name, v := range e.stats("ejections_active") {
			if strings.Contains(name, "backend") && v == "1" {
				return true
			}
		}
		return false
	})
	for range 20 {
		if code, body := plain(ports[0], "/"); code != http.StatusOK {
			t.Errorf("got %d %s", code, body)
		}
	}
	e.refusedNothing()
}

// TestRouteFilters: weights, header matches, redirects and rewrites.
func TestRouteFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", func(out http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(out, "backend %s %s", r.URL.Path, r.Header.Get("X-Added"))
	})
	w.handler("canary", "canary", answers("canary"))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: all, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [
  {matches: [{path: {type: PathPrefix, value: /split}}], default: {backendRefs: [{kind: MeshService, name: backend, port: 80, weight: 50}, {kind: MeshService, name: canary, port: 80, weight: 50}]}},
  {matches: [{path: {type: Exact, value: /canary}, method: GET, headers: [{name: x-test, value: "1"}], queryParams: [{type: Exact, name: q, value: "2"}]}], default: {backendRefs: [{kind: MeshService, name: canary, port: 80}]}},
  {matches: [{path: {type: PathPrefix, value: /old}}], default: {filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}, statusCode: 301}}]}},
  {matches: [{path: {type: PathPrefix, value: /v2}}], default: {filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}},
    {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-added, value: "100%"}]}}], backendRefs: [{kind: MeshService, name: backend, port: 80}]}},
  {matches: [{path: {type: PathPrefix, value: /gone}}], default: {backendRefs: [{kind: MeshService, name: nowhere, port: 80}]}}]}]}}`)
	eventually(t, "canary by all that is matched", func() bool { _, body := plain(ports[0], "/canary?q=2", "x-test", "1"); return body == "canary /canary" })
	for what, c := range map[string]struct{ path, want string }{
		"no header": {"/canary?q=2", "backend /canary "}, "rewrite": {"/v2/foo", "backend /foo 100%"},
		"rewrite of all": {"/v2", "backend / 100%"},
		"by segment":     {"/v2foo", "backend /v2foo "},
		"redirect":       {"/old/a", fmt.Sprintf("http://127.0.0.1:%d/new/a", ports[0])},
	} {
		if _, body := plain(ports[0], c.path); body != c.want {
			t.Errorf("%s: got %q, want %q", what, body, c.want)
		}
	}
	if code, _ := plain(ports[0], "/gone"); code != http.StatusServiceUnavailable {
		t.Errorf("a backend that does not exist: %d", code)
	}
	shares := map[string]int{}
	for range 100 {
		_, body := plain(ports[0], "/split")
		shares[strings.Fields(body)[0]]++
	}
	if shares["backend"] < 25 || shares["canary"] < 25 || shares["backend"]+shares["canary"] != 100 {
		t.Errorf("shares of 50 and 50: %v", shares)
	}
	e.refusedNothing()
}

// TestExpressionsThatEnvoyRefuses: expressions that Go reads and Envoy's RE2 refuses, or only with a limit of its own,
// keep no other route of the service from the proxy.
func TestExpressionsThatEnvoyRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", answers("backend"))
	w.handler("canary", "canary", answers("canary"))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	const to = "default: {backendRefs: [{kind: MeshService, name: canary, port: 80}]}}"
	var rules []string
	for i, expression := range []string{`\p{Letter}+`, `[\x{200b}a]`, `[a-z]{1000}`, `\pN{500}`} {
		rules = append(rules, fmt.Sprintf(`{matches: [{path: {type: Exact, value: /h%d}, headers: [{type: RegularExpression, name: x-a, value: '%s'}]}], %s`, i, expression, to),
			fmt.Sprintf(`{matches: [{path: {type: RegularExpression, value: '/p%d/%s'}}], %s`, i, expression, to))
	}
	rules = append(rules, fmt.Sprintf(`{matches: [{path: {type: PathPrefix, value: /%s}}], default: {filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}],
  backendRefs: [{kind: MeshService, name: canary, port: 80}]}}`, strings.Repeat("long", 60)),
		`{matches: [{path: {type: Exact, value: /last}}], `+to)
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: all, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [` + strings.Join(rules, ",\n") + `]}]}}`)
	eventually(t, "the route beside them", func() bool { _, body := plain(ports[0], "/last"); return body == "canary /last" })
	for path, want := range map[string]string{
		"/h0": "canary /h0", "/p0/abc": "canary /p0/abc", "/p0/1": "backend /p0/1", "/p1/a": "canary /p1/a",
		"/p2/" + strings.Repeat("a", 1000):      "canary /p2/" + strings.Repeat("a", 1000),
		"/p2/" + strings.Repeat("a", 999):       "backend /p2/" + strings.Repeat("a", 999),
		"/" + strings.Repeat("long", 60) + "/x": "canary /x",
	} {
		if _, body := plain(ports[0], path, "x-a", "abc"); body != want {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	e.refusedNothing()
}
