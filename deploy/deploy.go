// Package deploy embeds what installs Causeway in Kubernetes, for causewayctl: the definitions in crds, and the charts,
// which Render renders as Helm does.
package deploy

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"slices"
)

//go:embed crds/*.yaml all:charts/causeway-global all:charts/causeway-zone
var files embed.FS

// Definitions returns the CustomResourceDefinitions and what belongs to them, as YAML documents in the order of
// installation.
func Definitions() ([]byte, error) {
	names, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	var out bytes.Buffer
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// rank orders what depends on the definitions after them.
func rank(name string) int {
	return slices.Index([]string{"roles.yaml", "admission.yaml"}, path.Base(name))
}
