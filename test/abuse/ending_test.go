package abuse

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/zone"
)

// TestStrangersDoNotHoldUpAnEnd checks that a server with 20 connections of strangers of each kind on each port ends
// within 10 s. It used to take 2 minutes: gRPC waits for handshakes, and Stop does not end them.
func TestStrangersDoNotHoldUpAnEnd(t *testing.T) {
	for _, s := range []*aServer{startOpenGlobal(t), startOpenZone(t)} {
		t.Run(s.name, func(t *testing.T) {
			for port, address := range s.addresses {
				crowd(t, port, address)
			}
			began := time.Now()
			if err := s.end(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the server ended after %s", took)
			}
		})
	}
}

// crowd opens connections that stay until the test ends.
func crowd(t *testing.T, port, address string) {
	t.Helper()
	_, number, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	hello := clientHello(t)
	for kind, first := range []string{
		hello, // first, so that these surely get places
		"", hello[:len(hello)/2], "GET / HTTP/1.1\r\nHost: x\r\nX-", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		for range 20 {
			conn, err := net.Dial("tcp", "127.0.0.1:"+number)
			if err != nil {
				t.Fatalf("%s: %v", port, err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := fmt.Fprint(conn, first); err != nil {
				t.Fatalf("%s: %v", port, err)
			}
			if kind == 0 { // the server has begun its handshake; plaintext ports answer otherwise, or hang up
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				_, _ = conn.Read(make([]byte, 1))
			}
		}
	}
}

// clientHello returns the start of a handshake.
func clientHello(t *testing.T) string {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(client, &tls.Config{ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"},
			MinVersion: tls.VersionTLS13}).Handshake()
	}()
	hello := make([]byte, 16<<10)
	n, err := server.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	<-done
	return string(hello[:n])
}

// startOpenGlobal starts a global with TLS on all ports that support it.
func startOpenGlobal(t *testing.T) *aServer {
	t.Helper()
	s := &aServer{name: "global", dataDir: t.TempDir()}
	c := global.Config{
		DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"), Log: slog.New(slog.DiscardHandler),
		KDSTLS:     true,
		APIAddress: "0.0.0.0:0", KDSAddress: "0.0.0.0:0", DiagnosticsAddress: "0.0.0.0:0", Access: settingsOf(),
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return global.Run(ctx, c) })
	return s
}

func startOpenZone(t *testing.T) *aServer {
	t.Helper()
	s := &aServer{name: "zone", dataDir: t.TempDir()}
	c := zone.Config{
		Zone: "zone-1", DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"),
		Log:        slog.New(slog.DiscardHandler),
		APIAddress: "127.0.0.1:0", XDSAddress: "0.0.0.0:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return zone.Run(ctx, c) })
	return s
}
