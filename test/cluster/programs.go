package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the folder of the repository, searched from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory: run this inside the repository")
		}
		dir = parent
	}
}

// Build compiles the three programs from the repository's sources into the folder bin, statically linked like a
// release.
func Build(ctx context.Context, bin string) error { return build(ctx, bin) }

func build(ctx context.Context, bin string, flags ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	args := append([]string{"build", "-o", bin + string(filepath.Separator)}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-buildvcs=false", "./cmd/...")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
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
