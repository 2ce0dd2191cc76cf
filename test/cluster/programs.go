package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/server/programtest"
)

// Root returns the folder of the repository, searched from the working directory upwards.
func Root() (string, error) { return programtest.Root() }

// Build compiles the three programs from the repository's sources into the folder bin, statically linked like a
// release, but without the page. Test packages that call it share the work: each program is linked once, in .run/, until
// its sources change.
func Build(ctx context.Context, bin string) error { return build(ctx, bin, programtest.Release) }

// build compiles a set of the programs.
func build(ctx context.Context, bin, set string) error {
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	shared, err := programtest.Build(ctx, set)
	if err != nil {
		return err
	}
	return linkAll(shared, bin)
}

// linkAll links the files of one folder into another. A later build replaces files and does not write into them, so the
// other folder keeps its content.
func linkAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		old, name := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if os.Link(old, name) == nil {
			continue
		}
		raw, err := os.ReadFile(old) // the folders are on different disks
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, raw, 0o700); err != nil { //nolint:gosec // a program
			return err
		}
	}
	return nil
}

// FindEnvoy returns the Envoy to use: the argument, the environment's ENVOY, the one that `make tools-envoy` installed
// in the repository, or one on the path. It fails if there is none, because a mesh needs one.
func FindEnvoy(path string) (string, error) {
	if path == "" {
		path = os.Getenv("ENVOY")
	}
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("envoy: %w", err)
		}
		return filepath.Abs(path)
	}
	if root, err := Root(); err == nil {
		installed := filepath.Join(root, ".tools", "bin", "envoy")
		if _, err := os.Stat(installed); err == nil {
			return installed, nil
		}
	}
	found, err := exec.LookPath("envoy")
	if err != nil {
		return "", fmt.Errorf("no Envoy: run make tools-envoy, or set ENVOY to its path")
	}
	return filepath.Abs(strings.TrimSpace(found))
}
