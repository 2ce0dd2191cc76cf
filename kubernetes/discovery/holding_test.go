package discovery

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// manyPods are pods with proxies.
func manyPods(t *testing.T, n int) (out []*apiserver.Object) {
	t.Helper()
	for i := range n {
		out = append(out, pod(t, fmt.Sprintf("p-%02d", i), fmt.Sprintf("10.1.0.%d", i+1), true))
	}
	return out
}

func (g *rig) dataplanes() (n int) {
	for range g.store.Snapshot().List(store.Query{Type: resources.TypeDataplane}) {
		n++
	}
	return n
}

func (g *rig) metric(want string) {
	g.t.Helper()
	name, _, _ := strings.Cut(want, "{")
	out, err := testutil.CollectAndFormat(g.Controller, expfmt.TypeTextPlain, name)
	if must(g.t, err); !strings.Contains(string(out), want+"\n") {
		g.t.Errorf("want %s:\n%s", want, out)
	}
}

// TestListsThatLeaveOutMost: a list that leaves out most of what was there removes nothing, before and after a restart. What
// the API server says is gone, when it is asked for it by its name, goes; what is there stays.
func TestListsThatLeaveOutMost(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		g := newRig(t)
		g.mesh("default")
		all := manyPods(t, 30)
		g.list(g.shop(all...))
		g.settled()
		if restarted {
			g.restart()
		}
		g.list(g.shop(all[:10]...))
		if g.settled(); g.dataplanes() != 30 {
			t.Fatalf("%d Dataplanes stay (restarted: %v)", g.dataplanes(), restarted)
		}
		g.metric(`causeway_discovery_held_objects{kind="Pod"} 20`)
		f := &fake{lists: g.shop(all[:10]...), beside: map[string][]*apiserver.Object{"pods": all[10:25]}}
		srv := httptest.NewTLSServer(f)
		g.Client = clientOf(t, srv)
		if err := g.isCluster(t.Context()); err == nil || !strings.Contains(err.Error(), "kube-system") {
			t.Errorf("an API server that has lost everything: %v", err)
		}
		f.beside["namespaces"] = []*apiserver.Object{parsed(t, m{"kind": "Namespace", "metadata": m{"name": "kube-system"}})}
		must(t, g.isCluster(t.Context()))
		for some := g.pods.some(); len(some) > 0; some = g.pods.some() {
			for _, id := range some {
				must(t, g.pods.ask(t.Context(), id))
			}
		}
		srv.Close()
		if g.settled(); g.dataplanes() != 25 {
			t.Errorf("%d Dataplanes stay of 25 pods (restarted: %v)", g.dataplanes(), restarted)
		}
		g.metric(`causeway_discovery_held_objects{kind="Pod"} 0`)
		g.metric(`causeway_discovery_objects{kind="Pod"} 25`)
		// A few, and what a watch says one by one, are believed at once.
		g.list(g.shop(all[:15]...))
		for _, o := range all[1:15] {
			g.pods.Deleted(o)
		}
		if g.settled(); g.dataplanes() != 1 {
			t.Errorf("%d Dataplanes stay of 1 pod (restarted: %v)", g.dataplanes(), restarted)
		}
	}
}

// TestWhatWasHeldIsLookedAtAgain: once the API server has told of all pods that were held, what is there without a proxy is
// gone from the mesh, and so is the MeshService of a Service that went meanwhile.
func TestWhatWasHeldIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		g := newRig(t)
		all := manyPods(t, 30)
		g.list(g.shop(all...))
		g.settled()
		if restarted {
			g.restart()
		}
		listed := g.shop(all[:10]...)
		g.list(listed)
		g.settled()
		g.services.Deleted(listed["services"][0])
		if g.settled(); g.dataplanes() != 30 || !slices.Contains(g.made(), "MeshService default/shop/web") {
			t.Fatalf("while pods are held (restarted: %v): %q", restarted, g.made())
		}
		bare := parsed(t, m{"kind": "Pod", "metadata": m{"name": "p-10", "namespace": "shop"}, "spec": m{"containers": []any{m{"name": "app"}}}})
		srv := httptest.NewTLSServer(&fake{beside: map[string][]*apiserver.Object{"pods": {bare}}})
		g.Client = clientOf(t, srv)
		for some := g.pods.some(); len(some) > 0; some = g.pods.some() {
			for _, id := range some {
				must(t, g.pods.ask(t.Context(), id))
			}
		}
		srv.Close()
		if g.settled(); g.dataplanes() != 10 || len(g.made()) != 10 {
			t.Errorf("%d Dataplanes stay of 10 pods with proxies (restarted: %v): %q", g.dataplanes(), restarted, g.made())
		}
	}
}

// lines counts the lines of a log that have a text.
type lines struct {
	text string
	n    atomic.Int64
}

func (l *lines) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.text) {
		l.n.Add(1)
	}
	return len(line), nil
}

// TestLostClusterIsToldOnce: an API server that has lost what it knew may stay so for long, and the log says it once.
func TestLostClusterIsToldOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	all := manyPods(t, 30)
	g.list(g.shop(all...))
	g.settled()
	g.restart()
	log := &lines{text: "objects that a list has omitted stay"}
	g.Log = slog.New(slog.NewTextHandler(log, nil))
	var asked atomic.Int64
	f := &fake{lists: g.shop(all[:10]...)}
	g.runs(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/"+systemNamespace) {
			asked.Add(1)
		}
		f.ServeHTTP(w, r)
	}))
	g.until("the API server to be asked again", func() bool { return asked.Load() > 3 })
	if told := log.n.Load(); told != 1 || g.dataplanes() != 30 {
		t.Errorf("it is told %d times; %d Dataplanes stay", told, g.dataplanes())
	}
}

// TestServicesThatAListLeavesOut: the same holds for Services.
func TestServicesThatAListLeavesOut(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.mesh("default")
	with := g.shop(pod(t, "a", "10.1.0.1", true))
	with["services"] = nil
	for i := range 12 {
		with["services"] = append(with["services"], service(t, fmt.Sprintf("s-%02d", i), m{"clusterIP": fmt.Sprintf("10.2.0.%d", i+1)}))
	}
	g.list(with)
	g.settled()
	before := len(g.made())
	g.restart()
	with["services"] = nil
	g.list(with)
	g.settled()
	g.list(with)
	if g.settled(); len(g.made()) != before {
		t.Errorf("the store has %d, had %d", len(g.made()), before)
	}
	g.metric(`causeway_discovery_held_objects{kind="Service"} 12`)
}

// TestProblemsAreCounted: metrics say how many objects are not in the mesh, and why.
func TestProblemsAreCounted(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	with := g.shop(manyPods(t, 3)...)
	for _, name := range []string{"a", "b"} {
		with["services"] = append(with["services"], parsed(t, m{"kind": "Service", "metadata": m{"name": name, "namespace": "shop",
			"labels": m{resources.LabelMesh: "other"}}, "spec": m{"selector": m{"app": "web"}, "ports": []any{m{"port": 80}}}}))
	}
	g.mesh("default")
	g.list(with)
	g.settled()
	g.metric(`causeway_discovery_problems{reason="NoMesh"} 2`)
	g.metric(`causeway_discovery_followed{kind="Pod"} 1`)
	g.pods.Failed(fmt.Errorf("away"))
	g.metric(`causeway_discovery_followed{kind="Pod"} 0`)
	g.mesh("other")
	g.settled()
	if n := testutil.CollectAndCount(g.Controller, "causeway_discovery_problems"); n != 0 {
		t.Errorf("%d problems are left", n)
	}
}
