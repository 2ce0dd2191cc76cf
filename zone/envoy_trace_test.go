package zone_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// traced is a caller whose proxy sends to a service with a proxy.
type traced struct {
	*world
	port   int // of the caller's outbound
	caller *envoy
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	w := newWorld(t)
	w.waitTrust()
	w.allowAll()
	w.service("backend")
	port := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: caller-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, outbound: [
  {port: %d, backendRef: {kind: MeshService, name: backend, port: 80}}]}}`, port))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller-1"})
	eventually(t, "the service", ok(port, "/"))
	return &traced{w, port, e}
}

func (w *traced) trace(conf string) {
	w.t.Helper()
	w.apply("{type: MeshTrace, mesh: default, name: p, spec: {default: " + conf + "}}")
}

// TestTracesReachAnOpenTelemetryCollector shows the fields of a MeshTrace with real Envoys on both sides of a call, and
// that another share or tag moves no listener.
func TestTracesReachAnOpenTelemetryCollector(t *testing.T) {
	t.Parallel()
	w, c := newTraced(t), startCollector(t)
	w.trace(fmt.Sprintf(`{backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], tags: [
  {name: env, literal: test}, {name: user, header: {name: x-user, default: nobody}}, {name: none, header: {name: x-none}}]}`, c.address))
	soon(t, func() error {
		plain(w.port, "/hello", "x-user", "alice")
		spans := c.taken()
		for _, s := range spans {
			if s.service == "caller" && s.attributes["env"] == "test" && s.attributes["user"] == "alice" &&
				s.attributes["none"] == "" &&
				slices.ContainsFunc(spans, func(o span) bool {
					return o.service == "backend" && o.trace == s.trace && o.attributes["env"] == "test"
				}) {
				return nil
			}
		}
		return fmt.Errorf("no trace with a span of both proxies among %v", spans)
	})
	soon(t, func() error {
		plain(w.port, "/")
		if !slices.ContainsFunc(c.taken(), func(s span) bool { return s.attributes["user"] == "nobody" }) {
			return fmt.Errorf("no span with the default of a header")
		}
		return nil
	})

	listeners := w.caller.listeners()
	other := startCollector(t)
	w.trace(fmt.Sprintf(`{backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], tags: [{name: moved, literal: "yes"}]}`, other.address))
	soon(t, func() error {
		plain(w.port, "/")
		if !slices.ContainsFunc(other.taken(), func(s span) bool { return s.service == "caller" && s.attributes["moved"] == "yes" }) {
			return fmt.Errorf("no span at the other collector: %v", other.taken())
		}
		return nil
	})
	for _, sampling := range []string{"{overall: 0}", "{random: 0, client: 0}"} {
		w.trace(fmt.Sprintf(`{backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], sampling: %s, tags: [{name: share, literal: %q}]}`, other.address, sampling, sampling))
		eventually(t, "the share", func() bool { return w.routes(sampling) })
		for range 20 {
			plain(w.port, "/")
		}
	}
	// What the client forces is traced though no request is by chance.
	w.trace(fmt.Sprintf(`{backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], sampling: {random: 0, client: 100}, tags: [{name: share, literal: forced}]}`, other.address))
	soon(t, func() error {
		plain(w.port, "/", "x-client-trace-id", "1")
		spans := other.taken()
		for _, s := range spans {
			if s.service == "caller" && s.attributes["share"] != "" && s.attributes["share"] != "forced" {
				return fmt.Errorf("traced what is not to be: %q", s)
			}
		}
		if !slices.ContainsFunc(spans, func(s span) bool { return s.attributes["share"] == "forced" }) {
			return fmt.Errorf("no forced span")
		}
		return nil
	})
	if now := w.caller.listeners(); fmt.Sprint(now) != fmt.Sprint(listeners) {
		t.Errorf("shares, tags and addresses moved listeners: %v, then %v", listeners, now)
	}
}

// routes reports whether the caller's Envoy has a text among its routes.
func (w *traced) routes(text string) bool {
	return strings.Contains(w.caller.get("/config_dump?resource=dynamic_route_configs"), text)
}

// TestTracesReachZipkin shows the fields for Zipkin with a real Envoy.
func TestTracesReachZipkin(t *testing.T) {
	t.Parallel()
	w, z := newTraced(t), startZipkin(t)
	w.trace(fmt.Sprintf(`{backends: [{type: Zipkin, zipkin: {url: "%s/api/v2/spans", traceId128bit: true}}]}`, z.URL))
	kinds := func(shared bool) error {
		plain(w.port, "/")
		byTrace := map[any]map[any]string{}
		for _, s := range z.taken() {
			if byTrace[s["traceId"]] == nil {
				byTrace[s["traceId"]] = map[any]string{}
			}
			kind, _ := s["kind"].(string)
			byTrace[s["traceId"]][s["id"]] += kind
		}
		for id, spans := range byTrace {
			text, _ := id.(string)
			for _, both := range spans {
				if shared && len(text) == 32 && (both == "CLIENTSERVER" || both == "SERVERCLIENT") {
					return nil
				}
			}
			if !shared && len(text) == 16 && len(spans) == 2 {
				return nil
			}
		}
		return fmt.Errorf("shared %v: %v", shared, byTrace)
	}
	soon(t, func() error { return kinds(true) })
	w.trace(fmt.Sprintf(`{backends: [{type: Zipkin, zipkin: {url: "%s/api/v2/spans", sharedSpanContext: false}}]}`, z.URL))
	soon(t, func() error { return kinds(false) })
	w.trace(fmt.Sprintf(`{backends: [{type: Zipkin, zipkin: {url: "%s/api/v2/spans", apiVersion: httpProto}}]}`, z.URL))
	soon(t, func() error {
		if plain(w.port, "/"); !z.binary() {
			return fmt.Errorf("no span in protobuf")
		}
		return nil
	})
	w.remove(resources.TypeMeshTrace, "p")
	eventually(t, "no collector", func() bool { return !strings.Contains(w.caller.get("/clusters"), "causeway_trace") })
	if status, _ := plain(w.port, "/"); status != 200 {
		t.Errorf("answered %d without the policy", status)
	}
}

// TestTracesReachDatadog shows the field for Datadog's agent with a real Envoy.
func TestTracesReachDatadog(t *testing.T) {
	t.Parallel()
	w := newTraced(t)
	var mu sync.Mutex
	var got []string
	agent := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+string(body))
		_, _ = io.WriteString(out, "{}")
	}))
	t.Cleanup(agent.Close)
	w.trace(fmt.Sprintf(`{backends: [{type: Datadog, datadog: {url: %q}}], tags: [{name: env, literal: for-datadog}]}`, agent.URL))
	soon(t, func() error {
		plain(w.port, "/")
		mu.Lock()
		defer mu.Unlock()
		for _, service := range []string{"caller", "backend"} {
			if !slices.ContainsFunc(got, func(one string) bool {
				return strings.HasPrefix(one, "/v0.4/traces ") && strings.Contains(one, "for-datadog") && strings.Contains(one, service)
			}) {
				return fmt.Errorf("no span of %s among %d requests", service, len(got))
			}
		}
		return nil
	})
}
