package zone_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/rbac"
	"github.com/causeway-mesh/causeway/zone/xds"
)

const patience = 60 * time.Second

// world is a zone's engine without its HTTP API and its global: store, identities and xDS.
type world struct {
	t           *testing.T
	store       *store.Memory
	status      *store.Memory
	home        resources.Home
	authorities *identity.Authorities
	keeper      *secrets.Keeper
	proxies     *xds.Proxies
	address     string // of xDS
	spire       string // socket of an agent, for the Envoys of services and callers
}

// newWorld runs a zone with the mesh default until the test ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, rbac.Auto)
}

// newWorldOf runs a zone that writes permissions in one form.
func newWorldOf(t *testing.T, form rbac.Form) *world {
	t.Helper()
	return newWorldIn(t, "zone-1", form)
}

// newWorldIn runs a zone with another name.
func newWorldIn(t *testing.T, name string, form rbac.Form) *world {
	t.Helper()
	w := &world{t: t, store: store.NewMemory(), status: store.NewMemory(),
		home: resources.Home{Zone: name, SystemNamespace: resources.DefaultSystemNamespace}}
	w.keeper = secrets.NewKeeper(w.store, newBox(t))
	w.authorities = identity.NewAuthorities(identity.Config{Keeper: w.keeper, Store: w.store, Zone: w.home.Zone})
	w.apply(`{type: Mesh, name: default}`)
	adminKey, err := envoyadmin.OpenKey(context.Background(), w.keeper, discardLog())
	must(t, err)
	proxies := xds.New(xds.Config{AdminPin: adminKey.Pin, Store: w.store, Status: w.status, Home: w.home, Authorities: w.authorities,
		Instance: "test", RBACForm: form, Sources: w.secretOf})
	w.proxies = proxies
	publisher := &identity.Publisher{Store: w.store, Home: w.home, Authorities: w.authorities, Log: discardLog()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- proxies.Run(ctx) }()
	go func() { done <- publisher.Run(ctx) }()
	go func() { done <- xds.Serve(ctx, listener, nil, proxies, nil) }()
	t.Cleanup(func() {
		cancel()
		for range 3 {
			must(t, <-done)
		}
	})
	return w
}

// newBox returns a box with a key of its own.
func newBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: discardLog()})
	must(t, err)
	return box
}

// apply stores documents as if they were written in the zone.
func (w *world) apply(documents string) {
	w.t.Helper()
	var batch store.Batch
	for _, document := range strings.Split(documents, "\n---\n") {
		batch.Ops = append(batch.Ops, store.Op{Put: w.resource(document)})
	}
	_, err := w.store.Apply(context.Background(), batch)
	must(w.t, err)
}

// resource parses a document in Universal form, just well enough for tests.
func (w *world) resource(document string) *resources.Resource {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	must(w.t, err)
	var head struct {
		Type                  resources.Type
		Mesh, Namespace, Name string
		Labels                map[string]string
		Spec                  json.RawMessage
	}
	must(w.t, json.Unmarshal(raw, &head))
	if head.Spec == nil {
		var body map[string]json.RawMessage
		must(w.t, json.Unmarshal(raw, &body))
		for _, meta := range []string{"type", "mesh", "namespace", "name", "labels"} {
			delete(body, meta)
		}
		head.Spec, err = json.Marshal(body)
		must(w.t, err)
	}
	spec, err := resources.NewSpec(head.Type, head.Spec)
	must(w.t, err)
	r := &resources.Resource{Key: resources.Key{Type: head.Type, Mesh: head.Mesh, Namespace: head.Namespace,
		Name: head.Name}, Spec: spec}
	r.Labels = w.home.ComputedLabels(r)
	for k, v := range head.Labels {
		r.Labels[k] = v
	}
	return r
}

// client returns an HTTP client with the SVID that the zone would issue to a Dataplane with this name and service
// account.
func (w *world) client(spiffePath string) *http.Client {
	w.t.Helper()
	return httpClient(w.certificate(spiffePath))
}

// certificate returns an SVID `spiffe://default.zone-1.mesh.local/workload/<workload>`.
func (w *world) certificate(workload string) *tls.Certificate {
	w.t.Helper()
	dp := w.resource(fmt.Sprintf("{type: Dataplane, mesh: default, name: client, labels: {kuma.io/workload: %s}, networking: {address: 127.0.0.1}}", workload))
	svid, err := w.authorities.Issue(dp)
	must(w.t, err)
	pair, err := tls.X509KeyPair(svid.CertificatePEM, svid.KeyPEM)
	must(w.t, err)
	return &pair
}

// httpClient returns a client that does not verify the server: these tests are about how the server sees the client.
func httpClient(certificate *tls.Certificate) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		DisableKeepAlives: true}}
}

// envoy is a running Envoy.
type envoy struct {
	t     *testing.T
	admin string
	log   string // the file of its output
	// kill ends it at once, and waits until its ports are free.
	kill func()
}

// envoyBinary returns the path in $ENVOY, or the binary that `make tools` installed.
func envoyBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ENVOY")
	if path == "" {
		path = filepath.Join("..", ".tools", "bin", "envoy")
	}
	if _, err := exec.LookPath(path); err != nil {
		t.Fatalf("no Envoy at %s: run make tools, or set ENVOY: %v", path, err)
	}
	return path
}

// startEnvoy runs an Envoy with the bootstrap of a Dataplane until the test ends.
func (w *world) startEnvoy(cfg zone.BootstrapConfig) *envoy {
	w.t.Helper()
	dir := w.t.TempDir()
	cfg.XDSAddress, cfg.AdminAddress = w.address, "127.0.0.1:0"
	bootstrap, err := zone.Bootstrap(cfg)
	must(w.t, err)
	file := filepath.Join(dir, "envoy.yaml")
	must(w.t, os.WriteFile(file, bootstrap, 0o600))
	return w.runEnvoy(file)
}

// runEnvoy runs an Envoy with a bootstrap file until the test ends.
func (w *world) runEnvoy(file string) *envoy {
	w.t.Helper()
	dir := filepath.Dir(file)
	addressFile := filepath.Join(dir, "admin")
	log, err := os.Create(filepath.Join(dir, "log"))
	must(w.t, err)
	cmd := exec.Command(envoyBinary(w.t), "-c", file, "--admin-address-path", addressFile, "--concurrency", "1",
		"--use-dynamic-base-id", "--log-level", "warning", "--drain-time-s", "1", "--parent-shutdown-time-s", "2",
		"--file-flush-interval-msec", "100")
	cmd.Stdout, cmd.Stderr = log, log
	must(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			w.t.Logf("envoy's log:\n%s", text)
		}
	})
	e := &envoy{t: w.t, log: log.Name(), kill: func() { must(w.t, cmd.Process.Kill()); _ = cmd.Wait() }}
	eventually(w.t, "envoy's admin address", func() bool {
		b, err := os.ReadFile(addressFile)
		e.admin = strings.TrimSpace(string(b))
		return err == nil && e.admin != ""
	})
	return e
}

// get reads a page of the admin interface.
func (e *envoy) get(path string) string {
	e.t.Helper()
	resp, err := http.Get("http://" + e.admin + path)
	must(e.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(e.t, err)
	return string(b)
}

// stats returns the statistics whose names match a regular expression, by name.
func (e *envoy) stats(filter string) map[string]string {
	e.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(e.get("/stats?filter=" + filter)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		out[name] = value
	}
	return out
}

// counted returns stats and requires at least one: a counter that a test compares, or expects to be 0, must exist.
func (e *envoy) counted(filter string) map[string]string {
	e.t.Helper()
	out := e.stats(filter)
	if len(out) == 0 {
		e.t.Fatalf("Envoy has no statistic that matches %s", filter)
	}
	return out
}

// updates counts updates of listeners in place.
const updates = "listener_manager.listener_in_place_updated"

// listeners returns the counters that a change of listeners moves, and the version of each listener with the time of
// its last update. It omits the version of the discovery itself (lds.version), which never changes over delta xDS.
func (e *envoy) listeners() map[string]string {
	e.t.Helper()
	out := e.stats("listener_manager.(listener_added|listener_modified|listener_in_place_updated|listener_removed|listener_create_success)$")
	var dump struct {
		Configs []struct {
			Name        string
			ActiveState struct {
				VersionInfo string `json:"version_info"`
				LastUpdated string `json:"last_updated"`
			} `json:"active_state"`
		}
	}
	must(e.t, json.Unmarshal([]byte(e.get("/config_dump?resource=dynamic_listeners")), &dump))
	for _, l := range dump.Configs {
		out["listener "+l.Name] = l.ActiveState.VersionInfo + " " + l.ActiveState.LastUpdated
	}
	if len(out) < 6 || len(dump.Configs) == 0 {
		e.t.Fatalf("listeners: %v", out)
	}
	return out
}

// application runs a server that answers 200 and counts the requests.
func application(t *testing.T) (port int, hits func() int) {
	t.Helper()
	var n counter
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.add()
		_, _ = io.WriteString(w, "application "+r.URL.Path)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port, n.value
}

// freePort returns a port on which nothing listens, and that no other test gets.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free()
	must(t, err)
	return port
}

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("not within %s: %s", patience, what)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func keyPair(t *testing.T, certificate, key []byte) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	must(t, err)
	return &pair
}
