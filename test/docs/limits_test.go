package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestEveryLimitIsInTheSpecification checks that the specification of the API knows every limit that a peer can meet.
// Programs made of it refuse answers with others.
func TestEveryLimitIsInTheSpecification(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "kds", "tracker", "limits.go"))
	if err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, found := range regexp.MustCompile(`\tLimit[A-Z]\w* += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		limits = append(limits, found[1])
	}
	raw, err := os.ReadFile(filepath.Join(root, "zone", "inspect", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var specification struct {
		Components struct {
			Schemas struct {
				SyncStatus struct {
					Properties struct {
						Over struct {
							Items struct {
								Properties struct {
									Limit struct {
										Enum []string `json:"enum"`
									} `json:"limit"`
								} `json:"properties"`
							} `json:"items"`
						} `json:"over"`
					} `json:"properties"`
				} `json:"SyncStatus"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &specification); err != nil {
		t.Fatal(err)
	}
	known := specification.Components.Schemas.SyncStatus.Properties.Over.Items.Properties.Limit.Enum
	if !slices.Equal(known, limits) || len(limits) < 5 {
		t.Errorf("it knows the limits %v; there are %v", known, limits)
	}
}
