package zone_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// scrape asks for metrics as Prometheus does, and returns how many series each has.
func scrape(c *http.Client, url string) (map[string]int, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %d %.100s", url, resp.StatusCode, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for name, family := range families {
		out[name] = len(family.GetMetric())
	}
	return out, nil
}

// TestMetricsByPolicy shows the fields of a MeshMetric in a real Envoy, and that no listener but its own comes or goes.
func TestMetricsByPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port, metrics, admin := freePort(t), freePort(t), freePort(t)
	w.httpDataplane("backend", port, service)
	w.apply(allowAlice)
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "backend", XDSAddress: w.address,
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", admin)})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	e := w.runEnvoy(file)
	alice := w.client("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	inbound := e.listeners()["listener self_inbound_dp_main"]
	plainly := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	for _, tt := range []struct {
		name, conf, url string
		client          *http.Client
		check           func(map[string]int) bool
	}{
		{"what was used", "{backends: [{type: Prometheus, prometheus: {port: %d}}]}", "http://127.0.0.1:%d/metrics", plainly,
			func(m map[string]int) bool {
				return m["envoy_cluster_upstream_rq_total"] > 0 && m["envoy_cluster_upstream_rq_timeout"] == 0
			}},
		{"all there is, on a path", "{backends: [{type: Prometheus, prometheus: {port: %d, path: /of/proxy}}], sidecar: {includeUnused: true}}", "http://127.0.0.1:%d/of/proxy", plainly,
			func(m map[string]int) bool { return m["envoy_cluster_upstream_rq_timeout"] > 0 }},
		{"by an expression", `{backends: [{type: Prometheus, prometheus: {port: %d}}], sidecar: {regex: '^server\.li(ve|.e)$', includeUnused: true}}`, "http://127.0.0.1:%d/metrics", plainly,
			func(m map[string]int) bool { return len(m) == 1 && m["envoy_server_live"] == 1 }},
		{"by an expression in Go's words", `{backends: [{type: Prometheus, prometheus: {port: %d}}], sidecar: {regex: '^server\.li\p{Letter}e$|^x\z', includeUnused: true}}`, "http://127.0.0.1:%d/metrics", plainly,
			func(m map[string]int) bool { return len(m) == 1 && m["envoy_server_live"] == 1 }},
		{"by one that cannot be had, of a peer", `{backends: [{type: Prometheus, prometheus: {port: %d}}], sidecar: {regex: '\x{200b}|live', includeUnused: true}}`, "http://127.0.0.1:%d/metrics", plainly,
			func(m map[string]int) bool { return len(m) == 0 }},
		{"the basic ones", "{backends: [{type: Prometheus, prometheus: {port: %d}}], sidecar: {includeUnused: true, profiles: {appendProfiles: [{name: Basic}]}}}", "http://127.0.0.1:%d/metrics", plainly,
			func(m map[string]int) bool {
				return m["envoy_cluster_upstream_rq_total"] > 0 && m["envoy_server_live"] == 1 &&
					m["envoy_filesystem_write_completed"] == 0 && m["envoy_runtime_load_success"] == 0
			}},
		{"for clients of the mesh", "{backends: [{type: Prometheus, prometheus: {port: %d, tls: {mode: ActiveMTLSBackend}}}]}", "https://127.0.0.1:%d/metrics", alice,
			func(m map[string]int) bool { return m["envoy_cluster_upstream_rq_total"] > 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.apply(fmt.Sprintf("{type: MeshMetric, mesh: default, name: p, spec: {default: "+tt.conf+"}}", metrics))
			soon(t, func() error {
				got, err := scrape(tt.client, fmt.Sprintf(tt.url, metrics))
				if err == nil && !tt.check(got) {
					err = fmt.Errorf("%v", got)
				}
				return err
			})
		})
	}
	if got, err := scrape(httpClient(nil), fmt.Sprintf("https://127.0.0.1:%d/metrics", metrics)); err == nil {
		t.Errorf("a client without an identity is answered: %v", got)
	}
	for _, path := range []string{"/", "/config_dump", "/metrics/../config_dump", "/metrics/", "/quitquitquit"} {
		if got, err := scrape(alice, fmt.Sprintf("https://127.0.0.1:%d%s", metrics, path)); err == nil ||
			!strings.Contains(err.Error(), "404") {
			t.Errorf("%s is answered: %v %v", path, got, err)
		}
	}
	w.remove(resources.TypeMeshMetric, "p")
	eventually(t, "no listener", func() bool { return !strings.Contains(e.get("/listeners"), "causeway_metrics") })
	if now := e.listeners()["listener self_inbound_dp_main"]; now != inbound {
		t.Errorf("the inbound's listener moved: %s, then %s", inbound, now)
	}
}

// TestMetricsWithoutAnAdminInterface: a policy that cannot take effect on a proxy is a problem of it, and is not called
// enforced there.
func TestMetricsWithoutAnAdminInterface(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port := freePort(t)
	w.httpDataplane("backend", port, service)
	w.apply(allowAlice + "\n---\n{type: MeshMetric, mesh: default, name: p, spec: {default: {backends: [{type: Prometheus, prometheus: {}}]}}}")
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"}) // its admin interface takes any port
	soon(t, func() error {
		key := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "backend"}
		insight := w.status.Snapshot().Get(key)
		if insight == nil || !strings.Contains(string(insight.Spec.JSON()), "kri_mm_default") {
			return fmt.Errorf("the insight says nothing of it: %v", insight)
		}
		return nil
	})
}
