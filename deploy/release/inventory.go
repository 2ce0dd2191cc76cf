package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bom is a software bill of materials in the form CycloneDX 1.5, JSON.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    bomMetadata `json:"metadata"`
	Components  []component `json:"components"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	// Modules have no hashes here: those in go.sum are of another kind.
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// inventory writes causeway_VERSION_linux_ARCH.cdx.json: the modules and the version of Go in the programs, according
// to the build information in the programs themselves.
func (r *release) inventory(arch string) error {
	modules := map[string]component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(r.stage, arch, program))
		if err != nil {
			return err
		}
		add := func(kind, name, version string) {
			c := moduleOf(kind, name, version)
			if known, there := modules[c.Ref]; there {
				c = known
			}
			c.Properties = append(c.Properties, property{"causeway:program", program})
			modules[c.Ref] = c
		}
		add("library", "std", info.GoVersion[len("go"):])
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add("library", m.Path, m.Version)
		}
	}
	b := bom{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: bomMetadata{
		Timestamp: r.when.Format(time.RFC3339),
		Component: moduleOf("application", "github.com/causeway-mesh/causeway", r.version),
	}}
	for _, c := range modules {
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return cmp.Compare(x.Ref, y.Ref) })
	raw, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("causeway_%s_linux_%s.cdx.json", r.version, arch)
	return os.WriteFile(filepath.Join(r.out, name), append(raw, '\n'), 0o644) //nolint:gosec // for everybody
}

func moduleOf(kind, name, version string) component {
	purl := "pkg:golang/" + name + "@" + version
	return component{Ref: purl, Type: kind, Name: name, Version: version, PURL: purl}
}
