package zone

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// tlsServer completes handshakes as the global would.
func tlsServer(t *testing.T, certificate *server.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", certificate.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

func testBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestGlobalTLS(t *testing.T) {
	dir := t.TempDir()
	ours, err := server.LoadOrCreateCertificate(filepath.Join(dir, "ours"), nil, testBox(t))
	if err != nil {
		t.Fatal(err)
	}
	other, err := server.LoadOrCreateCertificate(filepath.Join(dir, "other"), nil, testBox(t))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, pem := range map[string][]byte{"ours": ours.CAPEM, "other": other.CAPEM, "empty": nil} {
		files[name] = filepath.Join(dir, name+".crt")
		if err := os.WriteFile(files[name], pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := tlsServer(t, ours)
	_, port, _ := net.SplitHostPort(address)
	for name, c := range map[string]struct {
		cfg Config
		ok  bool
	}{
		"CA":              {Config{GlobalCA: files["ours"]}, true},
		"other CA":        {Config{GlobalCA: files["other"]}, false},
		"empty CA":        {Config{GlobalCA: files["empty"]}, false},
		"missing CA":      {Config{GlobalCA: "/nowhere"}, false},
		"pin":             {Config{GlobalCASHA256: ours.CASHA256}, true},
		"pin, upper case": {Config{GlobalCASHA256: strings.ToUpper(ours.CASHA256)}, true},
		"other pin":       {Config{GlobalCASHA256: other.CASHA256}, false},
		"insecure":        {Config{GlobalInsecure: true}, true},
		"pin, other host": {Config{GlobalCASHA256: ours.CASHA256, Global: "grpcs://wrong.example:" + port}, false},
		"CA, other host":  {Config{GlobalCA: files["ours"], Global: "grpcs://wrong.example:" + port}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Global == "" {
				c.cfg.Global = "grpcs://" + address
			}
			config, _, err := globalTLS(&c.cfg, nil)
			if err == nil {
				var conn net.Conn
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address); err == nil {
					_ = conn.Close()
				}
			}
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	config, target, err := globalTLS(&Config{Global: "grpc://127.0.0.1:5685"}, nil)
	if config != nil || target != "127.0.0.1:5685" || err != nil {
		t.Errorf("plaintext: %v %q %v", config, target, err)
	}
}
