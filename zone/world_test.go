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
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server/porttest"
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
	// wholeState makes Envoys ask for the state of the world.
	wholeState bool
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
	start := time.Now()
	for time.Since(start) < patience {
		if condition() {
			return
		}
		time.Sleep(min(max(time.Since(start)/20, 10*time.Millisecond), 50*time.Millisecond))
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
