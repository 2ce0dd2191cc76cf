package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsLogThatNobodyReads starts both servers with standard error a pipe that nobody reads, and asks until it is
// full. Each request is answered. Once somebody reads, the log goes on and reports how much is lost. When the reader
// ends, the server goes on, and it ends on SIGTERM. Before, all requests waited for the reader, while /readyz said ok,
// and a server died with its reader.
func TestFaultsLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	for program, args := range map[string][]string{
		"causeway-global": {"--kds-address", "127.0.0.1:0"},
		"causeway-zone":   {"--zone", "alone", "--xds-address", "127.0.0.1:0"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			l := startUnread(t, program, args...)
			l.asks("beside a full pipe")
			if l.lost() == 0 {
				t.Fatal("no line was lost: the pipe is not full")
			}
			l.readsUntil("the log took no lines for a while")
			if err := l.reader.Close(); err != nil {
				t.Fatal(err)
			}
			before := l.lost()
			l.asks("without a reader")
			if l.lost() == before {
				t.Error("lines that nobody could read are not counted as lost")
			}
			if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := l.wait(endPatience); err != nil {
				t.Errorf("it does not end in order: %v", err)
			}
		})
	}
}

// endPatience is how long a server may take to end, on a busy machine.
const endPatience = 30 * time.Second

// unread is a server whose log is a pipe that nobody reads.
type unread struct {
	t                *testing.T
	cmd              *exec.Cmd
	reader           *os.File
	api, diagnostics string
	done             chan error
}

func startUnread(t *testing.T, program string, args ...string) *unread {
	t.Helper()
	dir := t.TempDir()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	ready := filepath.Join(dir, "ready")
	l := &unread{t: t, reader: reader, done: make(chan error, 1),
		cmd: exec.Command(filepath.Join(programs.bin(), program), append([]string{"run", "--data-dir", filepath.Join(dir, "data"),
			"--api-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0", "--log-level", "debug",
			"--ready-file", ready}, args...)...)}
	l.cmd.Stderr = writer
	if err := errors.Join(l.cmd.Start(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	go func() { l.done <- l.cmd.Wait() }()
	t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	var addresses map[string]string
	if err := cluster.Until(t.Context(), time.Minute, program+" to be ready", func(context.Context) error {
		raw, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &addresses)
	}); err != nil {
		t.Fatal(err)
	}
	l.api, l.diagnostics = "http://"+addresses["api"], "http://"+addresses["diagnostics"]
	return l
}

// wait waits until the process has ended.
func (l *unread) wait(within time.Duration) error {
	select {
	case err := <-l.done:
		return err
	case <-time.After(within):
		return fmt.Errorf("it still runs after %s", within)
	}
}

// asks makes requests whose lines in the log exceed a pipe, and checks that each is answered.
func (l *unread) asks(when string) {
	l.t.Helper()
	ctx, end := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer end()
	name := strings.Repeat("n", 1000)
	for i := range 150 {
		status, _, err := l.ask(ctx, l.api+"/"+name)
		if err != nil || status != http.StatusNotFound {
			l.t.Fatalf("%s, request %d: status %d: %v", when, i, status, err)
		}
	}
	if status, said, err := l.ask(ctx, l.diagnostics+"/readyz"); err != nil || status != http.StatusOK {
		l.t.Errorf("%s, it is not ready: %s (%v)", when, said, err)
	}
}

func (l *unread) ask(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

// lost returns how many lines the server counts as lost.
func (l *unread) lost() (lines float64) {
	l.t.Helper()
	_, metrics, err := l.ask(l.t.Context(), l.diagnostics+"/metrics")
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(metrics) {
		if _, err := fmt.Sscanf(line, "causeway_log_lines_lost_total %g", &lines); err == nil {
			return lines
		}
	}
	l.t.Fatal("no causeway_log_lines_lost_total")
	return 0
}

// readsUntil reads the log until it has a text. Requests add lines meanwhile: the first of them may be lost, too, until the
// server knows that the line that waited was taken.
func (l *unread) readsUntil(text string) {
	l.t.Helper()
	var said strings.Builder
	buffer := make([]byte, 64<<10)
	for end := time.Now().Add(time.Minute); !strings.Contains(said.String(), text); {
		if err := l.reader.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			l.t.Fatal(err)
		}
		n, err := l.reader.Read(buffer)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			l.t.Fatalf("the log does not say %q: %v", text, err)
		}
		said.Write(buffer[:n])
		if _, _, err := l.ask(l.t.Context(), l.api+"/another"); err != nil {
			l.t.Fatal(err)
		}
	}
}
