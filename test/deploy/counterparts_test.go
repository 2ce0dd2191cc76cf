package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// observed is a zone with a caller of a service, each behind a real Envoy that can send its metrics.
type observed struct {
	*cluster.Cluster
	t               *testing.T
	zone            *cluster.Server
	backend, caller *cluster.Workload
}

// servicePort is the port of the MeshService that the caller calls.
const servicePort = 80

// newObserved starts one whose service speaks a protocol; an application of the test's own listens on application, or
// one of the cluster's if that is 0.
func newObserved(t *testing.T, protocol string, application int) *observed {
	t.Helper()
	envoy, err := cluster.FindEnvoy("")
	must(t, err)
	c, err := cluster.New(cluster.Config{Bin: programs(), Envoy: envoy, Dir: t.TempDir()})
	must(t, err)
	o := &observed{Cluster: c, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			var logs strings.Builder
			c.Tails(&logs, 15)
			t.Logf("the ends of the logs:\n%s", logs.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	o.zone, err = c.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: global})
	must(t, err)
	push := []string{"--push-metrics-every", "1s"}
	o.backend, err = c.StartWorkload(t.Context(), cluster.WorkloadConfig{Zone: o.zone, Mesh: "default", Name: "backend",
		Labels: map[string]string{"app": "backend", "kuma.io/workload": "backend"}, Bootstrap: push,
		Inbounds: []cluster.InboundConfig{{Name: "main", Protocol: protocol, ServicePort: application}}})
	must(t, err)
	t.Cleanup(o.backend.Close)
	o.caller, err = c.StartWorkload(t.Context(), cluster.WorkloadConfig{Zone: o.zone, Mesh: "default", Name: "caller",
		Labels: map[string]string{"kuma.io/workload": "caller"}, Bootstrap: push,
		Inbounds: []cluster.InboundConfig{{Name: "main", Protocol: cluster.ProtocolHTTP}},
		Outbounds: []cluster.OutboundConfig{{Name: "backend",
			BackendRef: map[string]any{"kind": "MeshService", "name": "backend", "port": servicePort}}}})
	must(t, err)
	t.Cleanup(o.caller.Close)
	o.apply(fmt.Sprintf(`{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [
  {name: main, port: %d, targetPort: main, appProtocol: %s}]}}
---
{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`,
		servicePort, protocol))
	return o
}

func (o *observed) apply(documents string) {
	o.t.Helper()
	_, err := o.CTL(o.t.Context(), o.zone, strings.NewReader(documents), "apply", "-f", "-")
	must(o.t, err)
}

// policy writes a policy named p.
func (o *observed) policy(typ, spec string) {
	o.t.Helper()
	o.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: %s}", typ, spec))
}

func (o *observed) remove(typ string) {
	o.t.Helper()
	_, err := o.CTL(o.t.Context(), o.zone, nil, "delete", strings.ToLower(typ), "p")
	must(o.t, err)
}

// soon waits until a condition holds.
func (o *observed) soon(what string, condition func(context.Context) error) {
	o.t.Helper()
	must(o.t, cluster.Until(o.t.Context(), patience, what, condition))
}

// start runs one of the tools until the cluster ends.
func (o *observed) start(name string, args ...string) *cluster.Process {
	o.t.Helper()
	p, err := o.Command(name, tool(o.t, name), args...)
	must(o.t, err)
	must(o.t, p.Start())
	return p
}

func free(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free()
	must(t, err)
	return port
}

// TestCounterpartsObserve: a real OpenTelemetry collector receives what MeshTrace, MeshAccessLog and MeshMetric send, and
// a real Prometheus with the job of deploy/prometheus/scrape.yaml reads the proxy's counters and what its application
// says.
func TestCounterpartsObserve(t *testing.T) {
	o := newObserved(t, cluster.ProtocolHTTP, 0)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "# TYPE shop_orders_total counter\nshop_orders_total 3\n")
	}))
	t.Cleanup(app.Close)
	otlp, metrics := fmt.Sprintf("127.0.0.1:%d", free(t)), free(t)
	collector := o.start("otelcol", "--config", "file:"+writeFile(t, "otelcol.yaml", fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
`, otlp)))
	o.policy("MeshTrace", fmt.Sprintf("{default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], tags: [{name: env, literal: of-the-trace}]}}", otlp))
	o.policy("MeshAccessLog", fmt.Sprintf("{to: [{targetRef: {kind: Mesh}, default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q, body: \"called %%REQ(:PATH)%%\"}}]}}]}", otlp))
	o.policy("MeshMetric", fmt.Sprintf(`{targetRef: {kind: Dataplane, name: backend}, default: {backends: [{type: Prometheus, prometheus: {port: %d}}, {type: OpenTelemetry, openTelemetry: {endpoint: %q}}],
  applications: [{name: shop, port: %d, path: /}]}}`, metrics, otlp, portOf(t, app.URL)))
	o.soon("the collector to have received everything", func(ctx context.Context) error {
		status, _, err := o.caller.Call(ctx, "backend", "/for-the-collector")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("got %d", status)
		}
		said := collector.Log()
		for _, want := range []string{"service.name: Str(backend)", "service.name: Str(caller)", "env: Str(of-the-trace)",
			"Body: Str(called /for-the-collector)", "Name: cluster.upstream_rq_total"} {
			if err == nil && !strings.Contains(said, want) {
				err = fmt.Errorf("the collector has not printed %q", want)
			}
		}
		return err
	})

	web := fmt.Sprintf("127.0.0.1:%d", free(t))
	o.start("prometheus", "--config.file", scraping(t, fmt.Sprintf("127.0.0.1:%d", metrics)), "--web.listen-address", web,
		"--storage.tsdb.path", t.TempDir())
	for query, want := range map[string]string{
		`up{job="causeway-proxies"}`: "1",
		`sum(envoy_cluster_upstream_rq_total{job="causeway-proxies"}) > bool 0`: "1",
		`shop_orders_total{job="causeway-proxies",application="shop"}`:          "3",
		`causeway_application_up{job="causeway-proxies",application="shop"}`:    "1",
		`sum(envoy_server_live{job="causeway-proxies"}) by (job)`:               "1",
	} {
		o.soon(query, func(ctx context.Context) error { return answers(ctx, web, query, want) })
	}
}

// scraping returns a configuration of Prometheus with the documented job for proxies, for one of them.
func scraping(t *testing.T, target string) string {
	t.Helper()
	var file struct {
		Jobs []map[string]any `yaml:"scrape_configs"`
	}
	must(t, yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "scrape.yaml")), &file))
	for _, job := range file.Jobs {
		if job["job_name"] != "causeway-proxies" {
			continue
		}
		job["static_configs"], job["scrape_interval"] = []any{map[string]any{"targets": []string{target}}}, "1s"
		text, err := yaml.Marshal(map[string]any{"scrape_configs": []any{job}})
		must(t, err)
		return writeFile(t, "prometheus.yaml", string(text))
	}
	t.Fatal("deploy/prometheus/scrape.yaml has no job causeway-proxies")
	return ""
}

// answers reports whether a query of Prometheus has one result, with a value.
func answers(ctx context.Context, web, query, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+web+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value []any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if r := answer.Data.Result; len(r) != 1 || len(r[0].Value) != 2 || r[0].Value[1] != want {
		return fmt.Errorf("the answer is %v, want %s", r, want)
	}
	return nil
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, bytes.TrimSpace([]byte(text)), 0o600))
	return file
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	must(t, err)
	var n int
	_, err = fmt.Sscan(port, &n)
	must(t, err)
	return n
}

// briefly is how long one call by a tool may take.
const briefly = 20 * time.Second
