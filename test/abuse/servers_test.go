package abuse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/web"
	"github.com/causeway-mesh/causeway/zone"
)

// aServer is a server under attack.
type aServer struct {
	name, dataDir string
	// addresses are the addresses in the ready file.
	addresses map[string]string
	// url is the URL of the HTTP API: TLS for the global, plaintext over loopback for the zone.
	url string
	// ca is the PEM of the CA behind the certificate; empty for loopback.
	ca []byte
	// admin is a client with all rights.
	admin *api.Client
	// end stops the server and waits until it has ended.
	end func() error
}

// world holds the servers of a run of the table: a global whose API is off loopback, and a zone that runs alone, on
// loopback.
type world struct {
	t            *testing.T
	global, zone *aServer
	provider     *provider
	users        *clientAuthority
	credentials  map[string]credential
	newcomers    int // zones with a join string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, provider: startProvider(t), users: newClientAuthority(t, "users")}
	w.global, w.zone = startGlobal(t, w), startZone(t)
	return w
}

func (w *world) server(name string) *aServer {
	if name == "zone" {
		return w.zone
	}
	return w.global
}

// settingsOf returns the settings of both servers. Their limits are high, because the limits have rows of their own.
func settingsOf() access.Settings {
	return access.Settings{Limits: access.Limits{RequestsPerSecond: 5000, FailuresPerSecond: 5000, FailuresBurst: 5000}}
}

func startGlobal(t *testing.T, w *world) *aServer {
	t.Helper()
	s := &aServer{name: "global", dataDir: t.TempDir()}
	c := global.Config{
		DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"), Log: slog.New(slog.DiscardHandler),
		KDSTLS: true, KDSZoneTokens: true,
		APIAddress: "0.0.0.0:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
		Page: web.New(),
	}
	c.Access.ClientCAFile = w.users.file(t)
	c.Access.OIDC = access.OIDCSettings{Issuer: w.provider.url, ClientID: providerClient, CAFile: w.provider.caFile}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return global.Run(ctx, c) })
	s.ca = read(t, filepath.Join(s.dataDir, "kds-tls", "ca.crt"))
	_, port, err := net.SplitHostPort(s.addresses["api"])
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://127.0.0.1:" + port
	s.admin = s.client(t, strings.TrimSpace(string(read(t, filepath.Join(s.dataDir, "admin.token")))))
	return s
}

func startZone(t *testing.T) *aServer {
	t.Helper()
	return startZoneWith(t, func(*zone.Config) {})
}

// startZoneWith starts a zone whose settings are changed first.
func startZoneWith(t *testing.T, change func(*zone.Config)) *aServer {
	t.Helper()
	s := &aServer{name: "zone", dataDir: t.TempDir()}
	c := zone.Config{
		Zone: "zone-1", DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"),
		Log:        slog.New(slog.DiscardHandler),
		APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
		XDSRequireCredentials: true,
	}
	change(&c)
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return zone.Run(ctx, c) })
	s.url = "http://" + s.addresses["api"]
	s.admin = s.client(t, "")
	return s
}

// run runs a server until the test ends, and waits until it is ready.
func (s *aServer) run(t *testing.T, readyFile string, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.end = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	})
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if raw, err := os.ReadFile(readyFile); err == nil {
			if err := json.Unmarshal(raw, &s.addresses); err != nil {
				t.Fatal(err)
			}
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", s.name, err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready", s.name)
		}
	}
}

// client returns a client with a token, or without one if it is empty.
func (s *aServer) client(t *testing.T, token string) *api.Client {
	t.Helper()
	c, err := api.NewClient(api.ClientConfig{Address: s.url, Token: token, TLS: s.tls()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// tls returns a configuration that trusts the server's authority; nil for loopback.
func (s *aServer) tls() *tls.Config {
	if s.ca == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
