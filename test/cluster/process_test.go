package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell creates a process that runs a script. The script prints "up" once it is ready for signals.
func shell(t *testing.T, script string) (*Cluster, *Process) {
	t.Helper()
	c, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, err := c.process("shell", "/bin/sh", []string{"-c", script})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the script to be up", func() bool { return strings.Contains(p.Log(), "\nup\n") })
	return c, p
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	err := Until(t.Context(), 10*time.Second, what, func(context.Context) error {
		if ok() {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStopWantsStatusZero(t *testing.T) {
	tests := []struct {
		name, script, want string
		within             time.Duration
	}{
		{"clean", `trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, "", time.Minute},
		{"status 3", `trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done`, "exit status 3", time.Minute},
		{"stubborn", `trap '' TERM; echo up; while :; do sleep 0.01; done`, "did not end by SIGTERM", 300 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := shell(t, tt.script)
			ctx, cancel := context.WithTimeout(t.Context(), tt.within)
			defer cancel()
			err := p.Stop(ctx)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err := p.Alive(); err == nil {
				t.Error("the process still runs")
			}
		})
	}
}

func TestCloseEndsChildrenOfChildren(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	c, _ := shell(t, `sleep 100 & echo $! > `+pidFile+`; trap '' TERM; echo up; wait; wait`)
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil {
		t.Log("the shell ended by SIGTERM")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child of the child to be gone", func() bool { return !alive(pid) })
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestStartAgainKeepsTheLog(t *testing.T) {
	_, p := shell(t, `echo up; exec sleep 100`)
	if err := p.Start(); err == nil {
		t.Error("it was started twice")
	}
	first := p.PID()
	p.Kill()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second run", func() bool { return strings.Count(p.Log(), "\nup\n") == 2 })
	if p.PID() == first {
		t.Error("the process number is still that of the first run")
	}
}

func TestPause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// One process that never forks: a shell that is stopped between vfork and its child's exec is in D, not T.
	_, p := shell(t, `echo up; exec tail -f `+file)
	p.Pause()
	waitFor(t, "the process to be stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	if err := os.WriteFile(file, []byte("tick\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Resume()
	waitFor(t, "the process to go on", func() bool { return strings.Contains(p.Log(), "\ntick\n") })
}

func TestUntilEndsAtOnceOnFinal(t *testing.T) {
	asked := 0
	err := Until(t.Context(), time.Minute, "nothing", func(context.Context) error {
		if asked++; asked == 3 {
			return Final(os.ErrPermission)
		}
		return errors.New("not yet")
	})
	if !errors.Is(err, os.ErrPermission) || asked != 3 {
		t.Errorf("asked %d times, got %v", asked, err)
	}
}

func TestUntilSaysWhatWasLast(t *testing.T) {
	err := Until(t.Context(), 30*time.Millisecond, "the moon", func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("still down")
	})
	if err == nil || !strings.Contains(err.Error(), "the moon") || !strings.Contains(err.Error(), "still down") {
		t.Errorf("got %v", err)
	}
}
