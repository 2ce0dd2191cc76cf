package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources/store"
)

// dying is a store that takes some more batches, and then none, as if the process had been killed.
type dying struct {
	store.Store

	left int
}

var errKilled = errors.New("killed")

func (s *dying) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	if s.left--; s.left < 0 {
		return nil, errKilled
	}
	return s.Store.Apply(ctx, b)
}

// TestKilledBetweenBatches ends discovery before each batch of a rollout of 600 pods, in which as many leave, and starts
// it anew on what the store has: the store ends with what it has where nobody is killed, and nobody who stays is ever gone.
func TestKilledBetweenBatches(t *testing.T) {
	t.Parallel()
	const pods = 600
	rollout := func(g *rig, generation string) map[string][]*apiserver.Object {
		all := []*apiserver.Object{pod(t, "stays", "10.1.0.1", true)}
		for i := range pods {
			all = append(all, pod(t, fmt.Sprintf("%s-%d", generation, i), fmt.Sprintf("10.2.%d.%d", i/250, 1+i%250), true))
		}
		return g.shop(all...)
	}
	var want []string
	for kill := 0; ; kill++ {
		g := newRig(t)
		g.list(rollout(g, "old"))
		g.settled()
		if kill == 0 { // nobody is killed
			g.list(rollout(g, "new"))
			g.settled()
			want = g.made()
			continue
		}
		mortal := &dying{g.store, kill - 1}
		g.Store = mortal
		g.list(rollout(g, "new"))
		var err error
		for more := true; more && err == nil; {
			more, err = g.writeOnce(t.Context())
		}
		if err == nil {
			if kill < 4 {
				t.Errorf("a rollout of %d pods takes %d batches: that shows nothing", pods, kill-1)
			}
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if !slices.Contains(g.made(), "Dataplane default/shop/stays") {
			t.Errorf("killed before batch %d: a pod that stays is gone", kill)
		}
		g.restart()
		g.settled() // before the API server has answered
		if !slices.Contains(g.made(), "MeshService default/shop/web") {
			t.Errorf("killed before batch %d: a Service is gone before the API server has answered", kill)
		}
		g.list(rollout(g, "new"))
		g.settled()
		if got := g.made(); !slices.Equal(got, want) {
			t.Errorf("killed before batch %d: the store has %d resources, want %d", kill, len(got), len(want))
		}
	}
}

// TestAPIServerThatIsAway follows an API server that goes away in each of several ways, and comes back with other pods: the
// mesh continues with its last state meanwhile, and has what changed afterwards.
func TestAPIServerThatIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]http.HandlerFunc{
		"it hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"it fails": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "etcdserver: no leader", http.StatusInternalServerError)
		},
		"it is overloaded":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"it forbids":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"it answers with junk": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>sign in</html>`)) },
		"a list that is cut": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"metadata": {"resourceVersion": "2"}, "items": [`))
		},
		"an answer of no list": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
		"a Status and no error": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"kind": "Status", "status": "Failure"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			f := &fake{lists: g.shop(pod(t, "a", "10.1.0.1", true), pod(t, "b", "10.1.0.2", true)), sent: map[string]chan string{}}
			for _, kind := range g.kinds {
				f.sent[kind.kind.Plural] = make(chan string, 10)
			}
			var isAway atomic.Bool
			var refused atomic.Int64
			srv := g.runs(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if isAway.Load() {
					refused.Add(1)
					away(w, r)
					return
				}
				f.ServeHTTP(w, r)
			}))
			has := []string{"Dataplane default/shop/a", "Dataplane default/shop/b", "MeshService default/shop/web"}
			g.until("both pods", g.isIn(has...))
			isAway.Store(true)
			srv.CloseClientConnections()
			g.until("it to be asked again and again", func() bool { return refused.Load() >= 6 })
			g.has(has...)
			f.mu.Lock()
			f.lists = g.shop(pod(t, "b", "10.1.0.2", false), pod(t, "c", "10.1.0.3", true))
			f.renewed = true
			f.mu.Unlock()
			isAway.Store(false)
			srv.CloseClientConnections()
			g.until("what changed meanwhile", g.isIn("Dataplane default/shop/b not ready", "Dataplane default/shop/c", "MeshService default/shop/web"))
		})
	}
}
