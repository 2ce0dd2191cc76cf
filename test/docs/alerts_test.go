package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestAlertsNameTheirPage checks that each alert of deploy/prometheus names a section of a page that exists.
func TestAlertsNameTheirPage(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "causeway.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct{ Runbook string }
			}
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			alerts++
			page, section, _ := strings.Cut(rule.Annotations.Runbook, "#")
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
			if err != nil || section == "" || !anchorsOf(string(text))[section] {
				t.Errorf("%s names %q, which is no section of a page (%v)", rule.Alert, rule.Annotations.Runbook, err)
			}
		}
	}
	if alerts < 15 {
		t.Errorf("found %d alerts: does this test still read the file rightly?", alerts)
	}
}
