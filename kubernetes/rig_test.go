package kubernetes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// rig is a bridge whose loops the test steps itself. Its API server knows all definitions, which are old, and no more.
type rig struct {
	*Bridge

	t      testing.TB
	store  *store.Memory
	clock  time.Time
	client *apiserver.Client
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigWith(t, connected(t))
}

func newRigWith(t testing.TB, client *apiserver.Client) *rig {
	t.Helper()
	g := &rig{t: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), client: client}
	g.reset(store.NewMemory())
	must(t, api.EnsureDefaultMesh(t.Context(), g.store, g.Home))
	return g
}

// connected returns a client of an API server that answers with definitions only.
func connected(t testing.TB) *apiserver.Client {
	t.Helper()
	return connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
			http.Error(w, "{}", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"metadata": {"name": "a-definition", "creationTimestamp": "2020-01-01T00:00:00Z"}}`)
	})
}

// connectedTo returns a client of an API server that answers so.
func connectedTo(t testing.TB, answer http.HandlerFunc) *apiserver.Client {
	t.Helper()
	srv := httptest.NewTLSServer(answer)
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	must(t, os.WriteFile(path+".ca", ca, 0o600))
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": %q}}], "users": [{"name": "it", "user": {"token": "t"}}]}`,
		srv.URL, path+".ca"), 0o600))
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: path})
	must(t, err)
	return client
}

// reset is a restart: a bridge that knows only what the store has.
func (g *rig) reset(s *store.Memory) {
	g.t.Helper()
	home := resources.Home{Zone: "zone-1", Alone: true}
	b, err := New(Config{Client: g.client, Home: home, Store: s, Routes: api.New(api.Config{Store: s, Home: home}),
		Rollout: func(*resources.Resource) *tracker.Rollout { return nil }, Pulse: func() string { return "" },
		Now: func() time.Time { return g.clock }, Log: slog.New(slog.DiscardHandler)})
	must(g.t, err)
	g.Bridge, g.store = b, s
}

// list tells the bridge of a complete list of permissions, and that there is nothing of other kinds.
func (g *rig) list(all ...*apiserver.Object) {
	g.t.Helper()
	for t, k := range g.kinds {
		s := &sink{bridge: g.Bridge, kind: k}
		if s.Replace(nil); t == resources.TypeMeshTrafficPermission {
			s.Replace(all)
		}
	}
	g.settled()
}

func (g *rig) sink() *sink {
	return &sink{bridge: g.Bridge, kind: g.kinds[resources.TypeMeshTrafficPermission]}
}

// settled lets the bridge do what it has to.
func (g *rig) settled() {
	ctx := g.t.Context()
	for range 3 {
		for g.feedOnce(ctx) {
		}
		g.compareAll(ctx)
		g.clock = g.clock.Add(2 * heldInterval)
		g.retryWaiting(ctx)
		g.retryHeld(ctx)
	}
}

// names lists the permissions in the store, with the UIDs of their objects.
func (g *rig) names() []string {
	out := []string{}
	for r := range g.store.Snapshot().List(store.Query{Type: resources.TypeMeshTrafficPermission}) {
		out = append(out, fmt.Sprintf("%s %s/%s %s/%d", r.Mesh, r.Namespace, r.Name, r.Object.UID, r.Object.Generation))
	}
	slices.Sort(out)
	return out
}

func (g *rig) holds(want ...string) {
	g.t.Helper()
	if got := g.names(); !slices.Equal(got, want) {
		g.t.Errorf("the store has %q, want %q", got, want)
	}
}

// accepted returns what the condition Accepted of a permission is to say.
func (g *rig) accepted(name apiserver.Name) string {
	c := g.saysOf(name)[0]
	return c.Status + " " + c.Message
}

// permission is a permission in the namespace shop.
func permission(uid string, generation int, labels map[string]string, valid bool) *apiserver.Object {
	return permissionIn("shop", uid, generation, labels, valid)
}

func permissionIn(namespace, uid string, generation int, labels map[string]string, valid bool) *apiserver.Object {
	kind := "Exact"
	if !valid {
		kind = "Exactly"
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission",
		"metadata": map[string]any{"name": "web", "namespace": namespace, "uid": uid, "generation": generation, "labels": labels,
			"resourceVersion": fmt.Sprint(uid, generation, labels), "creationTimestamp": "2025-01-01T00:00:00Z"},
		"spec": map[string]any{"default": map[string]any{"deny": []any{map[string]any{"spiffeId": map[string]string{"type": kind, "value": "spiffe://a/b"}}}}}})
	if err != nil {
		panic(err)
	}
	o, err := apiserver.Parse(raw)
	if err != nil {
		panic(err)
	}
	return o
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var web = apiserver.Name{Namespace: "shop", Name: "web"}
