package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

// manager is the service manager's end of NOTIFY_SOCKET.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &manager{t, conn}
}

// until reads messages up to the wanted one, and fails at an unwanted one.
func (m *manager) until(what string, wanted, unwanted func(string) bool) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buffer)
		if err != nil {
			m.t.Fatalf("waiting for %s: %v", what, err)
		}
		message := string(buffer[:n])
		if unwanted != nil && unwanted(message) {
			m.t.Fatalf("waiting for %s: got %q", what, message)
		}
		if wanted(message) {
			return
		}
	}
}

func having(part string) func(string) bool {
	return func(message string) bool { return strings.Contains(message, part) }
}

func without(part string) func(string) bool {
	return func(message string) bool { return !strings.Contains(message, part) }
}

// TestNotify checks that the server sends READY after the checks, WATCHDOG while it answers, and STOPPING at the end.
func TestNotify(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "1500000")
	d := server.NewDiagnostics()
	var broken atomic.Pointer[string]
	why := "the disk is full"
	broken.Store(&why)
	d.AddCheck("store", func() error {
		if why := broken.Load(); why != nil {
			return errors.New(*why)
		}
		return nil
	})
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, endServing := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving, l) }()
	ctx, end := context.WithCancel(t.Context())
	notified := make(chan error, 1)
	go func() { notified <- d.Notify(ctx, l.Addr(), slog.New(slog.DiscardHandler)) }()

	m.until("what keeps it from being ready", having("STATUS=not ready: store: the disk is full"), having("READY=1"))
	broken.Store(nil)
	m.until("READY", having("READY=1"), having("WATCHDOG=1"))
	m.until("a ping", having("STATUS=ready\nWATCHDOG=1"), nil)
	broken.Store(&why)
	m.until("a ping of a server that is not ready any more",
		having("STATUS=not ready: store: the disk is full\nWATCHDOG=1"), nil)

	endServing()
	if err := <-served; err != nil {
		t.Error(err)
	}
	m.until("a message without a ping, as the port does not answer", without("WATCHDOG=1"), nil)
	end()
	m.until("the end", having("STOPPING=1"), nil)
	if err := <-notified; err != nil {
		t.Error(err)
	}
}

// TestNobodyToNotify checks that nothing happens without a service manager, and that the server runs if its manager is
// gone.
func TestNobodyToNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	d := server.NewDiagnostics()
	if err := d.Notify(t.Context(), &net.TCPAddr{}, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	var log strings.Builder
	ctx, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	if err := d.Notify(ctx, &net.TCPAddr{}, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "NOTIFY_SOCKET does not answer"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}
