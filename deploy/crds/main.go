// Command crds writes the CustomResourceDefinitions of all types into deploy/crds, a file for each, from the registry
// and the schemas that decode documents; and what belongs to them: ClusterRoles, and admission policies for what the
// API server can refuse by itself. Descriptions come from fields.txt, or from the comments of the code.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/test/cluster"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func write() error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	files, err := definitions(root)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "deploy", "crds")
	old, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, kept := files[filepath.Base(path)]; !kept {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
	}
	return nil
}
