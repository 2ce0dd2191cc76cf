package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestPromtoolRules makes Prometheus load and test the alerts: each fires when it should, and not before.
func TestPromtoolRules(t *testing.T) {
	folder := filepath.Join(root, "deploy", "prometheus")
	output(t, tool(t, "promtool"), "check", "rules", filepath.Join(folder, "causeway.rules.yaml"))
	output(t, tool(t, "promtool"), "test", "rules", filepath.Join(folder, "causeway.rules.test.yaml"))
}

// TestAlertsArePlayed checks that the file of the test above has each alert, firing and not firing.
func TestAlertsArePlayed(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert    string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "causeway.rules.test.yaml")), &file))
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, one := range file.Tests {
		for _, c := range one.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Expected) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Expected) == 0
		}
	}
	for _, rule := range rules(t) {
		if !fires[rule.where] || !silent[rule.where] {
			t.Errorf("%s: no test sees it fire, or none sees it silent", rule.where)
		}
	}
}

// TestPromtoolMetrics makes Prometheus check the names and kinds of real servers' metrics.
func TestPromtoolMetrics(t *testing.T) {
	c := newCluster(t)
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	zone, err := c.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: global,
		Args: []string{"--access-log", "als"}})
	must(t, err)
	must(t, zone.WaitMesh(t.Context(), "default"))
	for _, s := range []*cluster.Server{global, zone} {
		raw, err := s.Diagnostics(t.Context(), "/metrics")
		must(t, err)
		if said, err := feed(t, string(raw), tool(t, "promtool"), "check", "metrics"); err != nil ||
			strings.TrimSpace(said) != "" {
			t.Errorf("%s: %v\n%s", s.Name(), err, said)
		}
	}
}

// TestScrapeConfig checks that the ports and CA files in the example are those of the servers.
func TestScrapeConfig(t *testing.T) {
	text := read(t, "deploy", "prometheus", "scrape.yaml")
	var parsed any
	must(t, yaml.Unmarshal([]byte(text), &parsed))
	for _, program := range []string{"causeway-global", "causeway-zone"} {
		port := regexp.MustCompile(`(?s)--diagnostics-address.*?default\s+"127\.0\.0\.1:(\d+)"`).FindStringSubmatch(output(t,
			filepath.Join(programs(), program), "run", "--help"))
		if port == nil || !strings.Contains(text, ".example:"+port[1]) || !strings.Contains(text, "job_name: "+program) {
			t.Errorf("%s listens on %v", program, port)
		}
	}
}
