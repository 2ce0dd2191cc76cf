package etcdtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/server/porttest"
)

// program returns the path of the program of a member. It is linked once, in .run/, for all test packages, until its
// sources change.
var program = sync.OnceValues(build)

func build() (string, error) {
	root, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no go.mod above the working directory: run this inside the repository")
		}
		root = filepath.Dir(root)
	}
	if err != nil {
		return "", err
	}
	file := filepath.Join(root, ".run", "programs", "etcd-member")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("%s: %w", lock.Name(), err)
	}
	cmd := exec.Command("go", "build", "-o", file, "-buildvcs=false", "-ldflags=-s -w", //nolint:gosec // a fixed command
		"./resources/store/etcd/etcdtest/member")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a member of etcd: %w\n%s", err, out)
	}
	return file, nil
}

// command returns a command that runs a member with arguments of package member. The member ends with this process,
// however this process ends.
func command(args ...string) (*exec.Cmd, error) {
	file, err := program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(file, args...) //nolint:gosec // the program of build
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// Alone returns a command that runs a single member in dir, and its client URL.
func Alone(dir string) (*exec.Cmd, string, error) {
	client, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	peer, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	cmd, err := command("m0", dir, client, peer, "m0="+peer, "")
	return cmd, client, err
}

func mustFreeURL(t testing.TB) string {
	t.Helper()
	u, err := freeURL()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func freeURL() (string, error) {
	port, err := porttest.Free()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port), nil
}
