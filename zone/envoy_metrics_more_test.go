package zone_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// measuredEnvoy starts a proxy whose metrics a MeshMetric may show and send, and returns the port of its admin interface.
func (w *world) measuredEnvoy(dataplane string) (e *envoy, admin int) {
	w.t.Helper()
	admin = freePort(w.t)
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: dataplane, XDSAddress: w.address,
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", admin), PushMetricsEvery: time.Second})
	must(w.t, err)
	file := filepath.Join(w.t.TempDir(), "envoy.yaml")
	must(w.t, os.WriteFile(file, bootstrap, 0o600))
	return w.runEnvoy(file), admin
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	must(t, err)
	var n int
	_, err = fmt.Sscan(port, &n)
	must(t, err)
	return n
}

func body(url string) (string, error) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%d %.200s", resp.StatusCode, raw)
	}
	return string(raw), err
}

// TestMetricsOfApplications: what applications say stands behind the proxy's own metrics, in one answer, and one that
// does not answer costs nothing but its own. The admin interface, and addresses elsewhere, are no applications.
func TestMetricsOfApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port, metrics := freePort(t), freePort(t)
	w.httpDataplane("backend", port, service)
	many := strings.Repeat("# Lines of a large application.\n", 1<<17) // 3 MiB: more than a proxy holds unless told to
	app := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics/prometheus":
			_, _ = io.WriteString(rw, "# TYPE shop_orders counter\nshop_orders 3\nshop_orders{kind=\"gift\"} 4\n# EOF\n")
		case "/of/it":
			_, _ = io.WriteString(rw, many+"# TYPE shop_big gauge\nshop_big 7\n")
		default:
			http.NotFound(rw, r)
		}
	}))
	defer app.Close()
	_, admin := w.measuredEnvoy("backend")
	at := portOf(t, app.URL)
	w.apply(fmt.Sprintf(`{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {port: %d}}], applications: [
	  {port: %d, name: 'shop'}, {port: %d, path: /of/it, address: 127.0.0.1}, {port: %d, name: gone}, {port: %d, path: /nothing}]}}}`,
		metrics, at, at, freePort(t), at))
	url := fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	soon(t, func() error {
		got, err := body(url)
		for _, want := range []string{"\nenvoy_server_live{} 1\n", "\nshop_orders{application=\"shop\"} 3\n",
			"\nshop_orders{application=\"shop\",kind=\"gift\"} 4\n", "\nshop_big 7\n",
			"\ncauseway_application_up{application=\"shop\"} 1\n", "\ncauseway_application_up{application=\"gone\"} 0\n",
			fmt.Sprintf("\ncauseway_application_up{application=\"127.0.0.1:%d\"} 0\n", at)} {
			if err == nil && !strings.Contains(got, want) {
				err = fmt.Errorf("no %q in %d bytes that end in %q", want, len(got), got[max(len(got)-500, 0):])
			}
		}
		if err == nil && strings.Contains(got, "# EOF") {
			err = fmt.Errorf("an answer in the midst of which is its end")
		}
		return err
	})
	if _, err := scrape(http.DefaultClient, url); err != nil {
		t.Error(err)
	}
	w.apply(fmt.Sprintf(`{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {port: %d}}], applications: [
	  {port: %d, path: /config_dump}, {port: 80, address: 192.0.2.77}]}}}`, metrics, admin))
	w.hasProblem("backend", "applications[0].port", "applications[1].address")
	soon(t, func() error {
		got, err := body(url)
		if err == nil && strings.Contains(got, "shop_orders") || strings.Contains(got, "bootstrap") {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
}

// hasProblem waits until the insight of a Dataplane says each of the texts.
func (w *world) hasProblem(dataplane string, texts ...string) {
	w.t.Helper()
	soon(w.t, func() error {
		insight := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: dataplane})
		if insight == nil {
			return fmt.Errorf("no insight")
		}
		for _, text := range texts {
			if !strings.Contains(string(insight.Spec.JSON()), text) {
				return fmt.Errorf("no %q in %s", text, insight.Spec.JSON())
			}
		}
		return nil
	})
}

// TestMetricsAtAPodsOwnPort: no policy makes the proxy of a pod listen on one of its own ports. On that which proves capture,
// the proxy would prove it itself, to a kubelet that asks for the path of its metrics.
func TestMetricsAtAPodsOwnPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend, kuma.io/managed-by: k8s-controller}, networking: {address: 127.0.0.1,
  inbound: [{name: main, port: %d, servicePort: %d, protocol: http}]}}`, freePort(t), service))
	e, _ := w.measuredEnvoy("backend")
	for _, port := range []int{injection.ProofPort, 15020, 15021, injection.ShownPort} {
		w.apply(fmt.Sprintf(`{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {port: %d, path: /ready}}]}}}`, port))
		w.hasProblem("backend", fmt.Sprintf("prometheus.port: %d is the proxy's own", port))
		if e.listeners()["listener causeway_metrics"] != "" {
			t.Errorf("the proxy listens on port %d", port)
		}
	}
	metrics := freePort(t)
	w.apply(fmt.Sprintf(`{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {port: %d, path: /ready}}]}}}`, metrics))
	soon(t, func() error { _, err := body(fmt.Sprintf("http://127.0.0.1:%d/ready", metrics)); return err })
}

// TestMetricsByName holds what a proxy shows for selectors against the same in Go, over all names that it has.
func TestMetricsByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port, metrics := freePort(t), freePort(t)
	w.httpDataplane("backend", port, service)
	w.measuredEnvoy("backend")
	n := 0
	shown := func(profiles string, want func(name string) bool, all []string) []string {
		t.Helper()
		n++
		path := fmt.Sprintf("/metrics/%d", n) // so that the answer is by this policy
		w.apply(fmt.Sprintf("{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {port: %d, path: %s}}], sidecar: {includeUnused: true, profiles: %s}}}}", metrics, path, profiles))
		var names []string
		soon(t, func() error {
			got, err := scrape(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, fmt.Sprintf("http://127.0.0.1:%d%s", metrics, path))
			names = slices.Sorted(maps.Keys(got))
			return err
		})
		for _, name := range names { // of which some are new
			if want != nil && !want(name) {
				t.Errorf("%s: %s is shown", profiles, name)
			}
		}
		for _, name := range all {
			if want(name) && !slices.Contains(names, name) {
				t.Errorf("%s: %s is not shown", profiles, name)
			}
		}
		return names
	}
	all := shown("{appendProfiles: [{name: All}], exclude: [{type: Exact, match: none_of_them}]}", nil, nil)
	if len(all) < 200 {
		t.Fatalf("%d names: %q", len(all), all)
	}
	some := false
	for _, expr := range []string{"^envoy_(cluster|server)_.*(total|ms)$", "_rq_[0-9]?xx", "x{2}", "(a|b+)*c.*_s{1,2}", "^e?nvoy_http",
		"[^a-z]y", ".", "$^", "(?i)ENVOY_SERVER", `\Aenvoy_l|live\z`, "(((a*)*)*)*b"} {
		re := regexp.MustCompile(expr)
		left := shown(fmt.Sprintf("{exclude: [{type: Regex, match: '%s'}]}", expr), func(name string) bool { return !re.MatchString(name) }, all)
		some = some || len(left) > 0 && len(left) < len(all)
	}
	if !some {
		t.Error("no expression tells names apart")
	}
	shown("{appendProfiles: [{name: None}], include: [{type: Exact, match: envoy_server_live}, {type: Prefix, match: envoy_runtime}, {type: Contains, match: _rbac_}]}",
		func(name string) bool {
			return name == "envoy_server_live" || strings.HasPrefix(name, "envoy_runtime") || strings.Contains(name, "_rbac_")
		}, all)
	shown("{exclude: [{type: Prefix, match: envoy_}], include: [{type: Contains, match: _cx_}]}",
		func(name string) bool { return !strings.HasPrefix(name, "envoy_") || strings.Contains(name, "_cx_") }, all)
	basic := shown("{appendProfiles: [{name: Basic}], include: [{type: Exact, match: envoy_runtime_load_success}]}", nil, nil)
	if !slices.Contains(basic, "envoy_runtime_load_success") || !slices.Contains(basic, "envoy_cluster_upstream_rq_total") ||
		slices.Contains(basic, "envoy_filesystem_write_completed") {
		t.Errorf("Basic and one more: %q", basic)
	}
}

// TestMetricsThatAreSent: a policy gives a proxy a collector without a restart, and takes it away. What it cannot have
// there is a problem.
func TestMetricsThatAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port := freePort(t)
	w.httpDataplane("backend", port, service)
	w.apply(allowAlice)
	e, _ := w.measuredEnvoy("backend")
	alice := w.client("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	before := e.listeners()
	for range 2 { // another collector is one more change of a cluster
		c := startCollector(t)
		w.apply(fmt.Sprintf("{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: '%s'}}]}}}", c.address))
		soon(t, func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.metrics["cluster.upstream_rq_total"] != "backend" {
				return fmt.Errorf("%d names, of them cluster.upstream_rq_total from %q", len(c.metrics), c.metrics["cluster.upstream_rq_total"])
			}
			return nil
		})
	}
	if now := e.listeners(); !maps.Equal(now, before) {
		t.Errorf("listeners moved: %v, then %v", before, now)
	}
	w.apply(`{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: '127.0.0.1:9'}}],
	  sidecar: {includeUnused: true}, applications: [{port: 80}]}}}`)
	w.hasProblem("backend", "sidecar: applies", "applications: apply to Prometheus only")
	w.remove(resources.TypeMeshMetric, "p")
	eventually(t, "no collector", func() bool { return !strings.Contains(e.get("/clusters"), "causeway_push_to::") })
}
