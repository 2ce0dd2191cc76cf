package global_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a global server under test.
type running struct {
	t         *testing.T
	addresses map[string]string
	stop      func() error
}

func start(t *testing.T, dir string, change ...func(*global.Config)) *running {
	t.Helper()
	c := global.Config{
		DataDir: dir, APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0",
		ReadyFile: filepath.Join(t.TempDir(), "ready"), KDSTLS: true, KDSInsecureAnonymous: true,
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- global.Run(ctx, c) }()
	r := &running{t: t, stop: func() error { cancel(); return <-done }}
	wait(t, "the ready file", func() bool {
		raw, err := os.ReadFile(c.ReadyFile)
		return err == nil && json.Unmarshal(raw, &r.addresses) == nil
	})
	return r
}

func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (r *running) call(method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.addresses["api"]+path,
		strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// connect runs a zone against the global and returns a function that stops it.
func (r *running) connect(dir, zone string, s store.Store, change ...func(*kds.ZoneConfig)) func() {
	r.t.Helper()
	ca, err := os.ReadFile(filepath.Join(dir, "kds-tls", "ca.crt"))
	if err != nil {
		r.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		r.t.Fatal("the CA file has no certificate")
	}
	config := kds.ZoneConfig{Zone: zone, Target: r.addresses["kds"], Store: s,
		Credentials: credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})}
	for _, f := range change {
		f(&config)
	}
	z := kds.NewZone(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- z.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

func TestZoneSyncsOverTLSAndIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir)
	zone := store.NewMemory()
	spec, err := resources.NewSpec(resources.TypeMeshService, []byte(`{"ports":[{"port":80}]}`))
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	service := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Name: "backend"}, Spec: spec})
	if _, err := zone.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: service}}}); err != nil {
		t.Fatal(err)
	}
	disconnect := r.connect(dir, "zone-1", zone)
	if code, body := r.call("PUT", "/meshes/default/meshtrafficpermissions/p",
		`{"type":"MeshTrafficPermission","mesh":"default","name":"p","spec":{"default":{}}}`); code/100 != 2 {
		t.Fatal(code, body)
	}
	wait(t, "the mesh and the policy in the zone", func() bool {
		n := 0
		for _, typ := range []resources.Type{resources.TypeMesh, resources.TypeMeshTrafficPermission} {
			for range zone.Snapshot().List(store.Query{Type: typ}) {
				n++
			}
		}
		return n == 2
	})
	overview := func() string { _, body := r.call("GET", "/zones/zone-1/_overview", ""); return body }
	wait(t, "the service on the global", func() bool {
		_, body := r.call("GET", "/meshes/default/meshservices", "")
		return strings.Contains(body, `"kuma.io/zone": "zone-1"`)
	})
	wait(t, "counters in the overview", func() bool {
		return strings.Contains(overview(), `"responsesAcknowledged"`) &&
			strings.Contains(overview(), `"MeshTrafficPermission"`)
	})
	if strings.Contains(overview(), "disconnectTime") {
		t.Error("the zone is shown as disconnected")
	}
	if code, _ := r.call("DELETE", "/zones/zone-1", ""); code != http.StatusBadRequest {
		t.Errorf("deleting a connected zone: %d", code)
	}
	disconnect()
	wait(t, "the disconnection in the overview", func() bool { return strings.Contains(overview(), "disconnectTime") })
	if code, body := r.call("DELETE", "/zones/zone-1", ""); code != http.StatusOK {
		t.Fatal(code, body)
	}
	wait(t, "the zone's copies are gone", func() bool {
		_, body := r.call("GET", "/meshes/default/meshservices", "")
		return strings.Contains(body, `"total": 0`)
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir)
	if code, body := r.call("PUT", "/meshes/default/meshtrafficpermissions/p",
		`{"type":"MeshTrafficPermission","mesh":"default","name":"p","spec":{"default":{}}}`); code/100 != 2 {
		t.Fatal(code, body)
	}
	zone := store.NewMemory()
	disconnect := r.connect(dir, "zone-1", zone)
	defer disconnect()
	permissions := func() (n int) {
		for range zone.Snapshot().List(store.Query{Type: resources.TypeMeshTrafficPermission}) {
			n++
		}
		return n
	}
	wait(t, "the policy", func() bool { return permissions() == 1 })
	wait(t, "the policies that the mesh begins with", func() bool {
		for _, key := range resources.InitialKeys("default") {
			if zone.Snapshot().Get(resources.Key{Type: key.Type, Mesh: key.Mesh, Name: hashing.Name(key.Mesh, key.Name)}) == nil {
				return false
			}
		}
		return true
	})
	kdsAddress := r.addresses["kds"]
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	revision := zone.Snapshot().Revision()
	r = start(t, dir, func(c *global.Config) { c.KDSAddress = kdsAddress })
	if code, body := r.call("PUT", "/meshes/default/meshtrafficpermissions/q",
		`{"type":"MeshTrafficPermission","mesh":"default","name":"q","spec":{"default":{}}}`); code/100 != 2 {
		t.Fatal(code, body)
	}
	wait(t, "the zone is back", func() bool { return permissions() == 2 })
	if got := zone.Snapshot().Revision(); got != revision+1 {
		t.Errorf("the zone wrote %d times, want once", got-revision)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotStart(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*global.Config){
		"no data directory": func(c *global.Config) { c.DataDir = "" },
		"loopback only":     func(c *global.Config) { c.KDSTLS, c.KDSAddress = false, ":0" },
		"want at most":      func(c *global.Config) { c.KDSMaxMessageSize = 1 << 30 },
		"ready file":        func(c *global.Config) { c.ReadyFile = c.DataDir + "/none/ready" },
		"another address":   func(c *global.Config) { c.APIAddress = "127.0.0.1:notaport" },
	} {
		c := global.Config{DataDir: t.TempDir(), APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0",
			DiagnosticsAddress: "127.0.0.1:0", KDSTLS: true, Log: slog.New(slog.DiscardHandler)}
		change(&c)
		if err := global.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one that says %q", err, what)
		}
	}
}
