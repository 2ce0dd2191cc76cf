package deploy

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var picture = flag.Bool("picture", false, "write docs/images/dashboard.svg anew")

// watched is how long the servers work while Prometheus reads them.
const watched = 30 * time.Second

// series is one line of a panel.
type series struct {
	Metric map[string]string
	Values [][2]any
}

// panel is a panel of the dashboard with what its queries returned.
type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }

	lines []line
}

// line is a series with its legend.
type line struct {
	legend string
	points []point
}

type point struct{ at, value float64 }

// quiet are panels that show something only while something is wrong.
var quiet = map[string]bool{"Refused now": true, "Refusals": true, "Refusals of proxies": true}

// TestCounterpartsDashboard runs each query of the dashboard's panels in a real Prometheus that reads a global, two zones
// and what a proxy reports. No panel is empty but those of what is wrong. With -picture it draws the panels.
func TestCounterpartsDashboard(t *testing.T) {
	envoy, err := cluster.FindEnvoy("")
	must(t, err)
	c, err := cluster.New(cluster.Config{Bin: programs(), Envoy: envoy, Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	o := &observed{Cluster: c, t: t}
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	web := fmt.Sprintf("127.0.0.1:%d", free(t))
	targets := []string{global.Address("diagnostics")}
	for _, name := range []string{"zone-2", "zone-1"} {
		o.zone, err = c.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: global, Args: []string{"--access-log", "als"}})
		must(t, err)
		targets = append(targets, o.zone.Address("diagnostics"))
	}
	o.start("prometheus", "--web.listen-address", web, "--storage.tsdb.path", t.TempDir(), "--config.file", writeFile(t, "prometheus.yaml",
		fmt.Sprintf("scrape_configs: [{job_name: causeway, scrape_interval: 1s, static_configs: [{targets: [%s]}]}]", strings.Join(targets, ", "))))
	o.backend, err = c.StartWorkload(t.Context(), cluster.WorkloadConfig{Zone: o.zone, Mesh: "default", Name: "backend",
		Labels: map[string]string{"app": "backend"}, Inbounds: []cluster.InboundConfig{{Name: "main", Protocol: cluster.ProtocolHTTP}}})
	must(t, err)
	t.Cleanup(o.backend.Close)
	id, err := cluster.RegisterClient(t.Context(), cluster.WorkloadConfig{Zone: o.zone, Mesh: "default", Name: "frontend"}, "zone-1")
	must(t, err)
	client := cluster.NewClient(id, false)
	defer client.Close()

	started := time.Now()
	for n := 0; time.Since(started) < watched; n++ {
		o.write(global, n)
		for _, method := range []string{http.MethodGet, http.MethodGet, http.MethodPost} {
			_, _, _ = client.Do(t.Context(), method, o.backend.Inbound("main").Port, "/orders") // allowed or denied: the proxy reports it
		}
	}
	all := dashboard(t)
	o.soon("every panel to show something", func(ctx context.Context) error {
		var empty []string
		for _, p := range all {
			if err := p.ask(ctx, web, started, time.Now()); err != nil {
				return fmt.Errorf("panel %s: %w", p.Title, err)
			}
			if len(p.lines) == 0 && !quiet[p.Title] {
				empty = append(empty, p.Title)
			}
		}
		if len(empty) > 0 {
			return fmt.Errorf("nothing in %q", empty)
		}
		return nil
	})
	for _, p := range all {
		if quiet[p.Title] && p.Type != "stat" && len(p.lines) > 0 {
			t.Errorf("panel %s shows %v, though nothing is wrong", p.Title, p.lines)
		}
	}
	if *picture {
		must(t, os.WriteFile(filepath.Join(root, "docs", "images", "dashboard.svg"), []byte(drawn(all)), 0o644)) //nolint:gosec // a picture of the documents
	}
}

// write writes a policy of the global.
func (o *observed) write(global *cluster.Server, n int) {
	o.t.Helper()
	policy := fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: reads, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}, method: [GET], path: {type: Prefix, value: /orders}}, {spiffeId: {type: Exact, value: "spiffe://a/%d"}}]}}]}}`, n)
	_, err := o.CTL(o.t.Context(), global, strings.NewReader(policy), "apply", "-f", "-")
	must(o.t, err)
}

// dashboard returns the panels.
func dashboard(t *testing.T) []*panel {
	t.Helper()
	var board struct{ Panels []*panel }
	must(t, json.Unmarshal([]byte(read(t, "deploy", "grafana", "causeway.json")), &board))
	return board.Panels
}

// ask runs the queries of a panel as Grafana does, with all zones chosen.
func (p *panel) ask(ctx context.Context, web string, from, to time.Time) error {
	p.lines = nil
	for _, q := range p.Targets {
		expr := strings.NewReplacer("$zone", ".*", "$__rate_interval", "10s").Replace(q.Expr)
		query := url.Values{"query": {expr}, "start": {strconv.FormatInt(from.Unix(), 10)}, "end": {strconv.FormatInt(to.Unix(), 10)}, "step": {"1"}}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+web+"/api/v1/query_range?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		var said struct {
			Status, Error string
			Data          struct{ Result []series }
		}
		err = json.NewDecoder(answer.Body).Decode(&said)
		_ = answer.Body.Close()
		if err != nil || said.Status != "success" {
			return fmt.Errorf("%s: %s %w", expr, said.Error, err)
		}
		for _, s := range said.Data.Result {
			p.add(q.LegendFormat, s)
		}
	}
	return nil
}

// add adds a series that has a value.
func (p *panel) add(legend string, s series) {
	for name, value := range s.Metric {
		legend = strings.ReplaceAll(legend, "{{"+name+"}}", value)
	}
	one := line{legend: legend}
	for _, v := range s.Values {
		at, _ := v[0].(float64)
		text, _ := v[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
			one.points = append(one.points, point{at, value})
		}
	}
	if len(one.points) > 0 {
		p.lines = append(p.lines, one)
	}
}
