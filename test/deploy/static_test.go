package deploy

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// nobody is the user id in the containers.
const nobody = 65532

// TestStatic checks that the programs need no interpreter and no library.
func TestStatic(t *testing.T) {
	for _, program := range []string{"causeway-global", "causeway-zone", "causewayctl"} {
		f, err := elf.Open(filepath.Join(programs(), program))
		must(t, err)
		libraries, err := f.ImportedLibraries()
		if err != nil || len(libraries) > 0 {
			t.Errorf("%s needs the libraries %q (%v)", program, libraries, err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s needs an interpreter", program)
			}
		}
		must(t, f.Close())
	}
}

// TestInAnEmptyRoot runs a server as its container would: in a root folder with only the program and a state folder, as
// a user without a name. Another process in the same root runs the health check.
func TestInAnEmptyRoot(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // another user runs in it
	program, err := os.ReadFile(filepath.Join(programs(), "causeway-global"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "causeway-global"), program, 0o755)) //nolint:gosec // another user runs it
	must(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	// A key that belongs to root and that the server can read, like systemd's credentials and Kubernetes' Secrets.
	key := filepath.Join(dir, "key")
	must(t, os.WriteFile(key, []byte("a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o400))
	if os.Geteuid() == 0 {
		must(t, os.Chown(filepath.Join(dir, "state"), nobody, nobody))
		must(t, os.Chown(key, 0, nobody))
		must(t, os.Chmod(key, 0o440)) //nolint:gosec // that is the point
	}
	port, err := porttest.Free()
	must(t, err)
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/causeway-global", args...)
		cmd.Dir, cmd.SysProcAttr = "/", inside(dir, nobody, nobody)
		cmd.Env = []string{"CAUSEWAY_DATA_DIR=/state", "CAUSEWAY_SECRETS_KEY_FILE=/key",
			"CAUSEWAY_API_ADDRESS=127.0.0.1:0", "CAUSEWAY_KDS_ADDRESS=127.0.0.1:0",
			fmt.Sprintf("CAUSEWAY_DIAGNOSTICS_ADDRESS=127.0.0.1:%d", port)}
		return cmd
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	defer log.Close()
	server := command(context.Background(), "run")
	server.Stdout, server.Stderr = log, log
	must(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	err = cluster.Until(t.Context(), patience, "the server to be ready", func(ctx context.Context) error {
		select {
		case err := <-ended:
			ended <- err
			return cluster.Final(fmt.Errorf("it ended: %w", errors.Join(err, errors.New("see its log"))))
		default:
		}
		out, err := command(ctx, "healthcheck").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		_ = server.Process.Kill()
		t.Fatalf("%v (%v)\n%s", err, <-ended, said)
	}
	must(t, server.Process.Signal(syscall.SIGTERM))
	if err := <-ended; err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}
