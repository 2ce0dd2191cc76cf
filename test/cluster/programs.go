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
	"syscall"
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
// release. Test packages that call it share the work: each program is linked once, in .run/, until its sources change.
func Build(ctx context.Context, bin string) error { return build(ctx, bin, "release") }

// build compiles the named variant of the programs, with these flags.
func build(ctx context.Context, bin, variant string, flags ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	shared := filepath.Join(root, ".run", "programs", variant)
	if err := errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(shared, 0o700)); err != nil {
		return err
	}
	lock, err := os.OpenFile(shared+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	args := append([]string{"build", "-o", shared + string(filepath.Separator), "-buildvcs=false", "-ldflags=-s -w"},
		flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/...")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
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
