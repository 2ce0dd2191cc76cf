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

	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// tlsServer completes handshakes as the global does.
func tlsServer(t *testing.T, certificate *server.Certificate) string {
	t.Helper()
	config := certificate.TLSConfig()
	config.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
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
	t.Parallel()
	dir := t.TempDir()
	ours, err := server.LoadOrCreateCertificate(filepath.Join(dir, "ours"), nil, testBox(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := server.LoadOrCreateCertificate(filepath.Join(dir, "other"), nil, testBox(t), time.Now)
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
			if err := handshake(t, &c.cfg, address); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	if c, err := credentialsOf(t, &Config{Global: "grpc://127.0.0.1:5685"}); c != nil || err != nil {
		t.Errorf("plaintext: %v %v", c, err)
	}
}

func credentialsOf(t *testing.T, cfg *Config) (credentials.TransportCredentials, error) {
	t.Helper()
	urls, err := cfg.globals()
	if err != nil {
		t.Fatal(err)
	}
	filled := cfg.withDefaults()
	return globalCredentials(&filled, urls, nil)
}

// handshake completes a handshake with the server at address, as with the first of the global's addresses.
func handshake(t *testing.T, cfg *Config, address string) error {
	t.Helper()
	secure, err := credentialsOf(t, cfg)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	urls, _ := cfg.globals()
	secured, _, err := secure.Clone().ClientHandshake(ctx, urls[0].Host, conn)
	if err != nil {
		return err
	}
	return secured.Close()
}

// TestGlobalsOfReplicas: several addresses must share one scheme.
func TestGlobalsOfReplicas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"grpcs://a:5685":                   "a:5685",
		"grpcs://a:5685,b:5685":            "a:5685 b:5685",
		"grpcs://a:5685, grpcs://b:5686":   "a:5685 b:5686",
		"grpcs://a:5685,grpc://b:5685":     "",
		"grpcs://a:5685,b":                 "",
		"grpcs://a:5685,":                  "",
		"grpc://127.0.0.1:5685,b:5685":     "",
		strings.Repeat("grpcs://a:1,", 17): "",
	} {
		got, err := GlobalAddresses(text)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
