package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// inTrouble are metrics that exist only while something is wrong, which TestMetricsAreThere does not cause. The tests
// of the packages that export them do.
var inTrouble = map[string]bool{
	"causeway_kds_refused": true, "causeway_kds_held_deletions": true, "causeway_zone_cloned": true,
	"causeway_xds_nacks_total": true,
}

var (
	metricName = regexp.MustCompile(`\bcauseway_[a-z_]+`)
	ofSeries   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// expression is the query of a rule or a panel, and its place.
type expression struct{ where, text string }

// rules returns the expressions of the alerts.
func rules(t *testing.T) []expression {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "causeway.rules.yaml")), &file))
	var all []expression
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			all = append(all, expression{r.Alert, r.Expr})
		}
	}
	return all
}

// panels returns the expressions of the dashboard, after a check of its form.
func panels(t *testing.T) []expression {
	t.Helper()
	var board struct {
		Title, UID    string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ Type, UID string }
			Targets     []struct{ RefID, Expr string }
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
	}
	decoder := json.NewDecoder(strings.NewReader(read(t, "deploy", "grafana", "causeway.json")))
	must(t, decoder.Decode(&board))
	if board.Title == "" || board.UID == "" || board.SchemaVersion == 0 {
		t.Errorf("the dashboard has title %q, uid %q, schema %d", board.Title, board.UID, board.SchemaVersion)
	}
	var all []expression
	ids := map[int]bool{}
	for _, p := range board.Panels {
		where := "panel " + p.Title
		if ids[p.ID] || p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 ||
			p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: want an id of its own, a description, the chosen data source, questions, and a place", where)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			all = append(all, expression{where, q.Expr})
		}
	}
	for _, v := range board.Templating.List {
		all = append(all, expression{"variable " + v.Name, fmt.Sprint(v.Query)})
	}
	return all
}

// TestMetricsAreThere checks that real servers, with a proxy that has denied a request, export every metric in alerts
// and dashboard.
func TestMetricsAreThere(t *testing.T) {
	said := scrape(t)
	source := sources(t)
	for _, e := range append(rules(t), panels(t)...) {
		names := metricName.FindAllString(e.text, -1)
		if len(names) == 0 && e.text != `up{job=~"causeway.*"} == 0` && e.where != "variable datasource" {
			t.Errorf("%s asks about no metric of ours: %s", e.where, e.text)
		}
		for _, name := range names {
			switch {
			case inTrouble[name]:
				if !strings.Contains(source, `"`+name+`"`) {
					t.Errorf("%s: no metric %s is made anywhere", e.where, name)
				}
			case !said[name]:
				t.Errorf("%s: no server says %s", e.where, name)
			}
		}
	}
	docs := read(t, "docs", "observability.md")
	for name := range said {
		name = ofSeries.ReplaceAllString(name, "")
		if strings.HasPrefix(name, "causeway_") && name != "causeway_build_info" && !strings.Contains(docs, "`"+name+"`") {
			t.Errorf("docs/observability.md does not say what %s is for", name)
		}
	}
}

// scrape returns the names of all series of a global and a zone with a proxy.
func scrape(t *testing.T) map[string]bool {
	t.Helper()
	envoy, err := cluster.FindEnvoy("")
	must(t, err)
	c, err := cluster.New(cluster.Config{Bin: programs(), Envoy: envoy, Dir: t.TempDir()})
	must(t, err)
	defer func() { must(t, c.Close()) }()
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	zone, err := c.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: global,
		Args: []string{"--access-log", "als"}})
	must(t, err)
	must(t, zone.WaitMesh(t.Context(), "default"))
	_, err = c.CTL(t.Context(), global, strings.NewReader("{type: MeshTimeout, mesh: default, name: t, spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 2s}}]}}"), "apply", "-f", "-")
	must(t, err)
	w, err := c.StartWorkload(t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "default", Name: "backend", ServiceAccount: "backend",
		Inbounds: []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP}},
	})
	must(t, err)
	defer w.Close()
	id, err := cluster.RegisterClient(t.Context(), cluster.WorkloadConfig{Zone: zone, Mesh: "default", Name: "frontend",
		ServiceAccount: "frontend"}, "zone-1")
	must(t, err)
	client := cluster.NewClient(id, false)
	defer client.Close()

	said := map[string]bool{}
	sample := regexp.MustCompile(`(?m)^([a-z_]+)[{ ]`)
	must(t, cluster.Until(t.Context(), patience, "a decision and an acknowledgement among the metrics",
		func(ctx context.Context) error {
			_, _, _ = client.Get(ctx, w.Inbound("http-port").Port, "/") // denied
			for _, s := range []*cluster.Server{global, zone} {
				raw, err := s.Diagnostics(ctx, "/metrics")
				if err != nil {
					return err
				}
				for _, m := range sample.FindAllStringSubmatch(string(raw), -1) {
					said[m[1]] = true
				}
			}
			for _, name := range []string{"causeway_decisions_total", "causeway_kds_propagation_seconds_count",
				"causeway_xds_acks_total"} {
				if !said[name] {
					return fmt.Errorf("no %s yet", name)
				}
			}
			return nil
		}))
	return said
}

// sources returns all Go code of the servers.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"kds", "global", "zone", "server", "resources", "api"} {
		must(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			all.Write(raw)
			return err
		}))
	}
	return all.String()
}
