// Package programtest compiles programs of the repository for tests, each once for all test packages.
package programtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
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
			return "", errors.New("no go.mod above the working directory: run this inside the repository")
		}
		dir = parent
	}
}

// Build compiles packages, with these flags of go build, into the folder NAME of .run/programs, statically linked like
// a release, and returns the folder. A program is linked once, until its sources change, and keeps its time until then:
// the go command looks at the time when it decides whether the result of a test that used the program still holds.
func Build(ctx context.Context, name string, flags []string, packages ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".run", "programs", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("%s: %w", lock.Name(), err)
	}
	before, err := openAll(dir)
	defer before.close()
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-o", dir + string(filepath.Separator), "-buildvcs=false", "-ldflags=-s -w"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...) //nolint:gosec // packages of ours
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, before.restoreTimes()
}

// Helpers are the packages of the programs that tests start beside those in cmd, by the names of the programs.
var Helpers = map[string]string{
	"demo":           "./test/demo",
	"idp":            "./test/idp",
	"member":         "./resources/store/etcd/etcdtest/member",
	"proxyless-grpc": "./docs/proxyless-grpc",
}

// Helper compiles one of Helpers as Build does, and returns its path.
func Helper(ctx context.Context, name string) (string, error) {
	dir, err := Build(ctx, name, nil, Helpers[name])
	return filepath.Join(dir, name), err
}

// program is a program before a build. It is open, so that no new file gets the number of the old one.
type program struct {
	*os.File
	before os.FileInfo
}

type programs []program

func openAll(dir string) (programs, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all programs
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return all, err
		}
		info, err := f.Stat()
		all = append(all, program{f, info})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (all programs) close() {
	for _, p := range all {
		_ = p.Close()
	}
}

// restoreTimes gives each program that was not linked anew the time that it had. The go command changes the time of a
// program that it finds up to date.
func (all programs) restoreTimes() error {
	for _, p := range all {
		now, err := os.Stat(p.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil && os.SameFile(p.before, now) && p.before.Size() == now.Size() {
			err = os.Chtimes(p.Name(), time.Time{}, p.before.ModTime())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
