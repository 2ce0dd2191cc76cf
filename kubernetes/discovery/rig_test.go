package discovery

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// rig is a controller whose API server is the test.
type rig struct {
	*Controller

	t     testing.TB
	store *store.Memory
}

func newRig(t testing.TB) *rig {
	t.Helper()
	g := &rig{t: t, store: store.NewMemory()}
	g.mesh("default")
	g.restart()
	return g
}

// restart is a controller that knows only what the store has.
func (g *rig) restart() {
	g.Controller = New(Config{Store: g.store, Home: home, Log: slog.New(slog.DiscardHandler)})
}

func (g *rig) mesh(name string) {
	g.t.Helper()
	spec, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	must(g.t, err)
	g.apply(store.Op{Put: home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: name}, Spec: spec})})
}

func (g *rig) apply(ops ...store.Op) {
	g.t.Helper()
	commit, err := g.store.Apply(g.t.Context(), store.Batch{Ops: ops})
	must(g.t, err)
	if g.Controller != nil { // as followStore does
		g.mu.Lock()
		for _, change := range commit.Changes {
			g.changedLocked(change)
		}
		g.mu.Unlock()
	}
}

func (g *rig) of(plural string) *following {
	i := slices.IndexFunc(g.kinds, func(f *following) bool { return f.kind.Plural == plural })
	return g.kinds[i]
}

// list tells of complete lists.
func (g *rig) list(of map[string][]*apiserver.Object) {
	g.t.Helper()
	for _, f := range g.kinds {
		for _, o := range of[f.kind.Plural] {
			f.Trim(o)
		}
		f.Replace(of[f.kind.Plural])
	}
}

// settled lets the controller do what it has to, and returns how many batches and changes that were.
func (g *rig) settled() (batches, changes int) {
	g.t.Helper()
	since := g.store.Snapshot().Revision()
	for more := true; more; {
		var err error
		more, err = g.writeOnce(g.t.Context())
		must(g.t, err)
	}
	commits, ok := g.store.Changes(since)
	if !ok {
		g.t.Fatal("the window is too short")
	}
	for _, c := range commits {
		batches++
		changes += len(c.Changes)
	}
	return batches, changes
}

func (g *rig) wrote(what string, batches, changes int) {
	g.t.Helper()
	if b, c := g.settled(); b > batches || c != changes {
		g.t.Errorf("%s: %d changes in %d batches, want %d in at most %d", what, c, b, changes, batches)
	}
}

// made lists what discovery made, with the states of inbounds.
func (g *rig) made() []string {
	out := []string{}
	for _, t := range []resources.Type{resources.TypeDataplane, resources.TypeMeshService} {
		for r := range g.store.Snapshot().List(store.Query{Type: t}) {
			text := fmt.Sprintf("%s %s/%s/%s", r.Type, r.Mesh, r.Namespace, r.Name)
			if strings.Contains(string(r.Spec.JSON()), `"state":"NotReady"`) {
				text += " not ready"
			}
			if !home.Discovered(r) {
				text += " of a user"
			}
			out = append(out, text)
		}
	}
	return out
}

func (g *rig) has(want ...string) {
	g.t.Helper()
	if got := g.made(); !slices.Equal(got, want) {
		g.t.Errorf("the store has %q, want %q", got, want)
	}
}

func parsed(t testing.TB, document map[string]any) *apiserver.Object {
	t.Helper()
	raw, err := json.Marshal(document)
	must(t, err)
	o, err := apiserver.Parse(raw)
	must(t, err)
	return o
}

type m = map[string]any

func namespace(t testing.TB, labels m) *apiserver.Object {
	return parsed(t, m{"kind": "Namespace", "metadata": m{"name": "shop", "labels": labels, "resourceVersion": "7"}})
}

var asks = m{"kuma.io/sidecar-injection": "enabled"}

// pod is a pod with a proxy. Without an address it has not begun.
func pod(t testing.TB, name, ip string, ready bool, more ...func(metadata m)) *apiserver.Object {
	t.Helper()
	document := m{"kind": "Pod", "spec": specOfPods(),
		"metadata": m{"name": name, "namespace": "shop", "uid": "uid-" + name, "labels": m{"app": "web"}}}
	status := m{"phase": "Pending"}
	if ip != "" {
		status = m{"phase": "Running", "podIP": ip, "conditions": []any{m{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[ready]}}}
	}
	document["status"] = status
	metadata := document["metadata"].(m)
	for _, change := range more {
		change(metadata)
	}
	if spec, ok := metadata["spec"]; ok {
		delete(metadata, "spec")
		document["spec"] = spec
	}
	if changed, ok := metadata["status"]; ok {
		delete(metadata, "status")
		document["status"] = changed
	}
	if account, ok := metadata["account"]; ok {
		delete(metadata, "account")
		document["spec"] = json.RawMessage(strings.Replace(string(specOfPods()), "{", fmt.Sprintf(`{"serviceAccountName": %q,`, account), 1))
	}
	return parsed(t, document)
}

// specOfPods is what injection makes of the spec of each pod.
var specOfPods = sync.OnceValue(func() json.RawMessage { return injectedSpec(&injected) })

// injectedSpec is the same with other settings.
func injectedSpec(settings *injection.Settings) json.RawMessage {
	raw := []byte(`{"spec": {"nodeName": "node-1", "containers": [{"name": "app", "ports": [{"containerPort": 80}]}]}}`)
	result, err := injection.Inject(raw, injection.Namespace{Name: "shop", Labels: map[string]string{labelInjection: "enabled"}}, settings)
	if err != nil || result.Patch[0].Path != "/spec/initContainers" {
		panic(fmt.Sprint(result, err))
	}
	return []byte(strings.Replace(string(raw[len(`{"spec": `):len(raw)-1]), "{", `{"initContainers": `+string(result.Patch[0].Value)+",", 1))
}

func leaving(metadata m) { metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z" }

func service(t testing.TB, name string, spec m) *apiserver.Object {
	t.Helper()
	spec["selector"] = m{"app": "web"}
	if spec["ports"] == nil {
		spec["ports"] = []any{m{"port": 80}}
	}
	return parsed(t, m{"kind": "Service", "metadata": m{"name": name, "namespace": "shop", "uid": "uid-" + name}, "spec": spec})
}

func node(t testing.TB, zone string) *apiserver.Object {
	t.Helper()
	return parsed(t, m{"kind": "Node", "metadata": m{"name": "node-1", "labels": m{"topology.kubernetes.io/zone": zone}}})
}

// shop is a namespace with one Service and pods.
func (g *rig) shop(pods ...*apiserver.Object) map[string][]*apiserver.Object {
	return map[string][]*apiserver.Object{"namespaces": {namespace(g.t, asks)}, "nodes": {node(g.t, "a")}, "pods": pods,
		"services": {service(g.t, "web", m{"clusterIP": "10.2.0.1"})}}
}
