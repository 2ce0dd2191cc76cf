package etcdtest

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/server/programtest"
)

// program returns the path of the program of a member. It is linked once, in .run/, for all test packages, until its
// sources change.
var program = sync.OnceValues(func() (string, error) {
	return programtest.Program(context.Background(), "member")
})

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
