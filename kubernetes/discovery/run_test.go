package discovery

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// fake answers lists with what it is given, watches with what is sent, and keeps Events.
type fake struct {
	mu     sync.Mutex
	lists  map[string][]*apiserver.Object // guarded by mu
	beside map[string][]*apiserver.Object // guarded by mu: what lists leave out
	denied map[string]bool                // guarded by mu: kinds that may not be listed
	events []string                       // guarded by mu
	sent   map[string]chan string
	// renewed is set once the server has lost its history: watches of before are told so.
	renewed bool // guarded by mu
}

// Revisions of lists, before and after the server has lost its history.
const firstRevision, renewedRevision = "1", "2"

func (f *fake) revision() string {
	if f.renewed {
		return renewedRevision
	}
	return firstRevision
}

// knows reports whether the server has the history after a revision.
func (f *fake) knows(revision string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.renewed || revision != firstRevision
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := filepath.Base(r.URL.Path)
	if r.Method == http.MethodPost {
		var e struct{ Reason, Message string }
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &e)
		f.mu.Lock()
		f.events = append(f.events, e.Reason+" "+e.Message)
		f.mu.Unlock()
		_, _ = w.Write(raw)
		return
	}
	if parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/"); len(parts) > 1 {
		f.get(w, parts[len(parts)-2], parts[len(parts)-1])
		return
	}
	if r.URL.Query().Get("watch") == "" {
		f.list(w, plural)
		return
	}
	if !f.knows(r.URL.Query().Get("resourceVersion")) {
		w.WriteHeader(http.StatusGone)
		return
	}
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case text := <-f.sent[plural]:
			fmt.Fprintln(w, text)
		}
	}
}

// get answers with an object that is there, in a list or beside the lists.
func (f *fake) get(w http.ResponseWriter, plural, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range slices.Concat(f.lists[plural], f.beside[plural]) {
		if o.Meta.Name == name {
			_, _ = w.Write(o.Raw)
			return
		}
	}
	http.Error(w, `{"kind": "Status", "reason": "NotFound", "message": "it is not there", "code": 404}`, http.StatusNotFound)
}

func (f *fake) list(w http.ResponseWriter, plural string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied[plural] {
		http.Error(w, `{"kind": "Status", "message": "it is forbidden", "code": 403}`, http.StatusForbidden)
		return
	}
	items := []json.RawMessage{}
	for _, o := range f.lists[plural] {
		items = append(items, o.Raw)
	}
	_ = json.NewEncoder(w).Encode(m{"metadata": m{"resourceVersion": f.revision()}, "items": items})
}

// send sends an event of a watch.
func (f *fake) send(plural, kind string, o *apiserver.Object) {
	f.sent[plural] <- fmt.Sprintf(`{"type": %q, "object": %s}`, kind, o.Raw)
}

// TestRun runs the controller against a server of lists and watches: nothing is written until all kinds may be listed,
// changes arrive by watches, and problems as Events.
func TestRun(t *testing.T) {
	g := newRig(t)
	f := &fake{lists: g.shop(pod(t, "a", "10.1.0.1", false)), denied: map[string]bool{"nodes": true}, sent: map[string]chan string{}}
	for _, kind := range g.kinds {
		f.sent[kind.kind.Plural] = make(chan string, 10)
	}
	g.runs(f)
	g.until("nodes to be refused", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.of("nodes").failed && g.of("pods").listed && g.of("services").listed && g.of("namespaces").listed
	})
	g.has()
	f.mu.Lock()
	f.denied = nil
	f.mu.Unlock()
	g.until("a pod that is not ready", g.isIn("Dataplane default/shop/a not ready", "MeshService default/shop/web"))
	f.send("pods", "MODIFIED", pod(t, "a", "10.1.0.1", true))
	g.until("the pod to be ready", g.isIn("Dataplane default/shop/a", "MeshService default/shop/web"))
	users := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "b"},
		Object: resources.Object{UID: "u"}, Spec: specOf(t, resources.TypeDataplane, `{"networking": {"address": "192.0.2.1", "inbound": [{"port": 1}]}}`)})
	_, err := g.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: users}}})
	must(t, err)
	f.send("pods", "ADDED", pod(t, "b", "10.1.0.2", true))
	g.until("an Event", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.events) == 1 && strings.HasPrefix(f.events[0], "NameTaken a Dataplane shop/b that a user wrote has this name")
	})
	_, err = g.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: users.Key}}})
	must(t, err)
	g.until("the pod, once the user's is gone", g.isIn("Dataplane default/shop/a", "Dataplane default/shop/b", "MeshService default/shop/web"))
	f.send("pods", "DELETED", pod(t, "a", "10.1.0.1", true))
	g.until("the pod to be gone", g.isIn("Dataplane default/shop/b", "MeshService default/shop/web"))
}

// runs runs the controller against an API server until the test ends.
func (g *rig) runs(apiServer http.Handler) *httptest.Server {
	g.t.Helper()
	srv := httptest.NewTLSServer(apiServer)
	g.t.Cleanup(srv.Close)
	g.Client = clientOf(g.t, srv)
	ctx, cancel := context.WithCancel(g.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	g.t.Cleanup(func() {
		cancel()
		must(g.t, <-done)
	})
	return srv
}

func (g *rig) isIn(want ...string) func() bool {
	return func() bool { return slices.Equal(g.made(), want) }
}

func (g *rig) until(what string, holds func() bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			g.t.Fatalf("waited in vain for %s; the store has %q", what, g.made())
		case <-tick.C:
		}
	}
}

func clientOf(t testing.TB, srv *httptest.Server) *apiserver.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path+".ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": %q}}], "users": [{"name": "it", "user": {"token": "t"}}]}`,
		srv.URL, path+".ca"), 0o600))
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: path})
	must(t, err)
	return client
}

// TestTrimmedIsSmall: what is held of a long list is what is read.
func TestTrimmedIsSmall(t *testing.T) {
	o := pod(t, "a", "10.1.0.1", true, func(metadata m) {
		metadata["managedFields"], metadata["annotations"] = strings.Repeat("x", 10_000), m{"a": strings.Repeat("x", 10_000)}
	})
	whole, err := readPod(o)
	must(t, err)
	before := len(o.Raw)
	newRig(t).of("pods").Trim(o)
	trimmed, err := readPod(o)
	must(t, err)
	if !reflect.DeepEqual(whole, trimmed) || whole.record() == nil || len(o.Raw) > before/10 {
		t.Errorf("of %d bytes %d are left, which say %+v, want %+v", before, len(o.Raw), trimmed, whole)
	}
}
