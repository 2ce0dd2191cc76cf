package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/cmd/settings"
)

// TestCaptureCommand checks install, status and uninstall, with the exit statuses that scripts rely on.
func TestCaptureCommand(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread, which leaves this network, ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Logf("this machine lets us make no network namespaces: %v", err)
			return
		}
		for _, step := range []struct {
			args, out string
			status    int
		}{
			{"status", "absent", 1},
			{"status -o xml", "must be one of text, json, yaml", 2},
			{"install", "--proxy-user: name the user", 1},
			{"install --proxy-user no-such-user", "unknown user", 1},
			{"install --proxy-user 0", "the proxy's user is root", 1},
			{"install --proxy-user 5678 --inbound-ports 0", `--inbound-ports: "0": want a port`, 1},
			{"install --proxy-user 5678 --exclude-inbound-addresses example.com", "--exclude-inbound-addresses: ", 1},
			{"install --proxy-user 5678 --exclude-users no-such-user", "--exclude-users: unknown user", 1},
			{"install --proxy-user 5678 --inbound-port 70000", "--inbound-port", 2},
			{"install --proxy-user 5678 --guard-ports 8080", "installed\ninbound: nobody listens on port 15006", 0},
			{"install --proxy-user 5678 --guard-ports 8080", "already installed", 0},
			{"status", "installed", 1}, // without a proxy
			{"status -o json", `"proxyUser": 5678`, 1},
			{"status -o yaml", "guardPorts:\n  - \"8080\"", 1},
			{"uninstall", "removed", 0},
			{"uninstall", "nothing to remove", 0},
		} {
			root, out := newRoot(), &bytes.Buffer{}
			root.SetArgs(append([]string{"capture"}, strings.Fields(step.args)...))
			root.SetOut(out)
			status := settings.Execute(root, out)
			if status != step.status || !strings.Contains(out.String(), step.out) {
				t.Errorf("%s: status %d, want %d; output %q, want %q", step.args, status, step.status, out, step.out)
			}
		}
	}()
	<-done
}
