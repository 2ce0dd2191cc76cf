package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
)

// startServer starts the servers of a script. The prefix of its name selects them: zone_ is a zone that runs alone,
// mesh_ a global with a zone, users_ a zone whose users have certificates, login_ a zone with an identity provider. Any other name gets the global's API over a
// store in memory.
func startServer(env *testscript.Env) error {
	env.Setenv("GOGC", "off") // what runs for 20 ms spends a tenth of that on collecting what it needs
	env.Setenv("PATH", programs()+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("PROGRAMS", programs()) // for a PATH with nothing else
	switch kind, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"), "_"); kind {
	case "zone":
		return startZoneAlone(env)
	case "mesh":
		return startMesh(env)
	case "users":
		return startForUsers(env)
	case "login":
		return startForLogin(env)
	}
	status, durable := store.NewMemory(), store.NewMemory()
	if err := seed(durable, status); err != nil {
		return err
	}
	handler := api.New(api.Config{Store: durable, Status: status, Version: "v0-test", RevisionWait: 500 * time.Millisecond})
	listening := httptest.NewServer(handler)
	env.Defer(listening.Close)
	env.Setenv(addressEnv, listening.URL)
	env.Setenv("HOSTPORT", listening.Listener.Addr().String())
	return startTLS(env, handler)
}

// startZoneAlone runs the zone zone-1 until the script ends.
func startZoneAlone(env *testscript.Env) error {
	ready, err := startZone(env, zone.Config{})
	env.Setenv(addressEnv, "http://"+ready["api"])
	return err
}

// startMesh runs a global and the zone zone-1, whose address is ZONE_ADDRESS, until the script ends. DATA_DIR,
// DIAGNOSTICS and KDS belong to the global.
func startMesh(env *testscript.Env) error {
	dir, err := serverDir(env)
	if err != nil {
		return err
	}
	config := global.Config{
		DataDir: dir, ReadyFile: filepath.Join(dir, "ready.json"), Log: slog.New(slog.DiscardHandler),
		APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0",
		KDSInsecureAnonymous: true,
	}
	ready, err := runServer(env, config.ReadyFile, func(ctx context.Context) error { return global.Run(ctx, config) })
	if err != nil {
		return err
	}
	env.Setenv(addressEnv, "http://"+ready["api"])
	env.Setenv("DATA_DIR", dir)
	env.Setenv("DIAGNOSTICS", "http://"+ready["diagnostics"])
	env.Setenv("KDS", ready["kds"])
	ready, err = startZone(env, zone.Config{Global: "grpc://" + ready["kds"]})
	env.Setenv("ZONE_ADDRESS", "http://"+ready["api"])
	env.Setenv("ZONE_DIAGNOSTICS", "http://"+ready["diagnostics"])
	return err
}

func startZone(env *testscript.Env, config zone.Config) (ready map[string]string, err error) {
	if config.DataDir == "" {
		if config.DataDir, err = serverDir(env); err != nil {
			return nil, err
		}
	}
	config.Zone, config.Log, config.ReadyFile = "zone-1", slog.New(slog.DiscardHandler),
		filepath.Join(config.DataDir, "ready.json")
	config.APIAddress = cmp.Or(config.APIAddress, "127.0.0.1:0")
	config.XDSAddress, config.DiagnosticsAddress = "127.0.0.1:0", cmp.Or(config.DiagnosticsAddress, "127.0.0.1:0")
	return runServer(env, config.ReadyFile, func(ctx context.Context) error { return zone.Run(ctx, config) })
}

// serverDir creates a folder that is removed when the script ends, after the servers in it.
func serverDir(env *testscript.Env) (string, error) {
	dir, err := os.MkdirTemp("", "causewayctl-server-")
	env.Defer(func() {
		if err := os.RemoveAll(dir); err != nil {
			env.T().Log("remove: ", err)
		}
	})
	return dir, err
}

// runServer runs a server until the script ends, and returns its addresses once it is ready.
func runServer(env *testscript.Env, readyFile string, run func(context.Context) error) (map[string]string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	env.Defer(func() {
		cancel()
		if err := <-ended; err != nil {
			env.T().Log("server: ", err)
			env.T().FailNow()
		}
	})
	return waitForReady(readyFile)
}

// waitForReady reads the ready file once it exists.
func waitForReady(file string) (map[string]string, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		raw, err := os.ReadFile(file)
		if err == nil {
			ready := map[string]string{}
			return ready, json.Unmarshal(raw, &ready)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the server is not ready: %w", err)
		}
	}
}

// startTLS serves the same API over https. The CA of its certificate is in ca.pem, and the CA's SHA-256 in CA_SHA256.
func startTLS(env *testscript.Env, handler http.Handler) error {
	listening := httptest.NewUnstartedServer(handler)
	listening.Config.ErrorLog = log.New(io.Discard, "", 0) // the tests include clients that do not trust it
	listening.StartTLS()
	env.Defer(listening.Close)
	env.Setenv("TLS_ADDRESS", listening.URL)
	env.Setenv("TLS_HOSTPORT", listening.Listener.Addr().String())
	sum := sha256.Sum256(listening.Certificate().Raw)
	env.Setenv("CA_SHA256", hex.EncodeToString(sum[:]))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
	return os.WriteFile(filepath.Join(env.WorkDir, "ca.pem"), ca, 0o600)
}

// seed stores the mesh default and two zones: one online, one that has disconnected.
func seed(durable, status store.Store) error {
	subscriptions := map[string]string{
		"zone-1": `{"id":"1","connectTime":"2026-01-02T03:04:05Z","version":{"kumaCp":{"version":"v1.2.3"}},
			"status":{"total":{"responsesSent":"7","responsesAcknowledged":"6","responsesRejected":"1"}}}`,
		"zone-2": `{"id":"1","connectTime":"2026-01-02T03:04:05Z","disconnectTime":"2026-01-02T03:04:06Z"}`,
	}
	if err := put(durable, resources.Key{Type: resources.TypeMesh, Name: "default"}, "{}"); err != nil {
		return err
	}
	for name, subscription := range subscriptions {
		if err := put(durable, resources.Key{Type: resources.TypeZone, Name: name}, `{"enabled":true}`); err != nil {
			return err
		}
		insight := resources.Key{Type: resources.TypeZoneInsight, Name: name}
		if err := put(status, insight, `{"subscriptions":[`+subscription+`]}`); err != nil {
			return err
		}
	}
	return nil
}

func put(s store.Store, key resources.Key, spec string) error {
	parsed, err := resources.NewSpec(key.Type, []byte(spec))
	if err != nil {
		return err
	}
	r := resources.Home{}.Labelled(&resources.Resource{Key: key, Spec: parsed})
	_, err = s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}})
	return err
}
