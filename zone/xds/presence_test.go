package xds

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// presenceWorld is a service with Dataplanes on ports of their own, and a caller.
type presenceWorld struct {
	t      *testing.T
	store  *store.Memory
	x      *Proxies
	caller *session
}

func (w *presenceWorld) apply(op store.Op) {
	w.t.Helper()
	if _, err := w.store.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
		w.t.Fatal(err)
	}
	if w.x != nil {
		w.x.catchUp()
	}
}

func (w *presenceWorld) dataplane(name string, port int) {
	w.t.Helper()
	w.apply(store.Op{Put: testResource(dataplaneKey(name), map[string]string{"app": "s"},
		map[string]any{"networking": map[string]any{
			"address": "192.0.2.1", "inbound": []any{map[string]any{"name": "main", "port": port, "protocol": "tcp"}},
		}})})
}

func (w *presenceWorld) service(home resources.Home, name string) {
	w.t.Helper()
	spec, err := resources.NewSpec(resources.TypeMeshService,
		[]byte(`{"selector": {"dataplaneLabels": {"matchLabels": {"app": "s"}}}, "ports": [{"port": 80, "targetPort": "main", "appProtocol": "tcp"}]}`))
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(store.Op{Put: home.Labelled(&resources.Resource{
		Key: resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: name}, Spec: spec,
		Labels: map[string]string{"set": "all"},
	})})
}

// come is the proxy of a Dataplane that takes in all that it should have.
func (w *presenceWorld) come(name string) *session {
	w.t.Helper()
	s := connect(w.x, name)
	w.takeIn(s)
	return s
}

func (w *presenceWorld) takeIn(s *session) {
	w.t.Helper()
	state := s.proxy.state.Load()
	for _, k := range []kind{kindCluster, kindListener, kindExtension} {
		known := map[string]string{}
		for _, r := range state.sets[k] {
			known[r.name] = r.version
		}
		s.proxy.record.sent(s.subscription, k, "1", time.Now())
		s.answered(typeURLs[k], "1", answer{}, "", false)
		sub := stream.NewDeltaSubscription([]string{"*"}, nil, known, true)
		cancel, err := s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k], ResponseNonce: "1"},
			sub, make(chan cache.DeltaResponse, 10))
		if err != nil || cancel == nil {
			w.t.Fatalf("%s: not everything is known: %v", k, err)
		}
	}
}

// expect compares what the caller is told of the service's endpoints, by port.
func (w *presenceWorld) expect(when string, want map[int]bool) {
	w.t.Helper()
	got := map[int]bool{}
	for _, r := range w.caller.proxy.state.Load().sets[kindEndpoint] {
		load := &endpointv3.ClusterLoadAssignment{}
		if err := r.delta.Resource.UnmarshalTo(load); err != nil {
			w.t.Fatal(err)
		}
		for _, group := range load.Endpoints {
			for _, e := range group.LbEndpoints {
				got[int(e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())] = e.HealthStatus != corev3.HealthStatus_UNHEALTHY
			}
		}
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("%s: endpoints by health %v, want %v", when, got, want)
	}
}

// TestPresence: callers are told of proxies that left, or have not come yet, when that is known and not before, and of
// no more.
func TestPresence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &presenceWorld{t: t, store: store.NewMemory()}
		w.service(testHome, "s")
		w.dataplane("a", 1)
		w.dataplane("b", 2)
		outbound := `{"networking": {"address": "192.0.2.9", "outbound": [{"port": 10001, "backendRef": {"kind": "MeshService", "name": "s", "port": 80}}]}}`
		spec, err := resources.NewSpec(resources.TypeDataplane, []byte(outbound))
		if err != nil {
			t.Fatal(err)
		}
		w.apply(store.Op{Put: testHome.Labelled(&resources.Resource{Key: dataplaneKey("caller"), Spec: spec})})
		w.x = testProxies(w.store)
		w.x.cfg.Log = slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.x.Run(ctx) }()
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		w.caller = connect(w.x, "caller")
		w.expect("after a start nothing is known", map[int]bool{1: true, 2: true})
		a := w.come("a")
		pass(awaitFor)
		w.expect("who did not come is gone", map[int]bool{1: true, 2: false})
		b := w.come("b")
		w.expect("who comes late is there", map[int]bool{1: true, 2: true})

		w.dataplane("c", 3)
		w.expect("a Dataplane is made", map[int]bool{1: true, 2: true, 3: false})
		c := connect(w.x, "c")
		w.expect("its proxy connects", map[int]bool{1: true, 2: true, 3: false})
		w.takeIn(c)
		w.expect("its proxy listens", map[int]bool{1: true, 2: true, 3: true})

		bystander, before := b.proxy.state.Load(), builds(w.x)
		a.end()
		pass(leaveFor - time.Nanosecond)
		w.expect("it may come back", map[int]bool{1: true, 2: true, 3: true})
		a = connect(w.x, "a")
		pass(leaveFor)
		w.expect("it came back", map[int]bool{1: true, 2: true, 3: true})
		if n := builds(w.x) - before; n != 1 { // its own
			t.Errorf("%v builds while one came back", n)
		}
		before = builds(w.x)
		a.end()
		pass(leaveFor)
		w.expect("it stays away", map[int]bool{1: false, 2: true, 3: true})
		if n := builds(w.x) - before; n != 1 || b.proxy.state.Load() != bystander {
			t.Errorf("%v builds for one caller of one that left", n)
		}
		b.end()
		c.end()
		pass(leaveFor)
		w.expect("nobody is left: all may be tried", map[int]bool{1: true, 2: true, 3: true})
		w.dataplane("d", 4)
		d := w.come("d")
		w.expect("one came", map[int]bool{1: false, 2: false, 3: false, 4: true})
		w.apply(store.Op{Delete: dataplaneKey("d")})
		w.dataplane("d", 4)
		w.apply(store.Op{Delete: dataplaneKey("a")})
		w.expect("deleted, and made anew without listeners", map[int]bool{2: true, 3: true, 4: true})
		w.takeIn(d)
		w.expect("the new one listens", map[int]bool{2: false, 3: false, 4: true})
		for _, s := range []*session{d, w.caller} {
			s.end()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func builds(x *Proxies) float64 { return testutil.ToFloat64(x.metrics.builds) }
