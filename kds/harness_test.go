package kds

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLog returns a logger that writes to stderr if KDS_TEST_LOG is set.
func testLog() *slog.Logger {
	if os.Getenv("KDS_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// events collects an Observer's events.
type events struct {
	mu   sync.Mutex
	list []Event // guarded by mu
}

func (e *events) Observe(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// ends returns the reasons why sessions ended.
func (e *events) ends() (reasons []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Kind == SessionEnded {
			reasons = append(reasons, ev.Err)
		}
	}
	return reasons
}

// count returns the number of events of the kind, and of the type if it is not empty.
func (e *events) count(kind EventKind, t resources.Type) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, ev := range e.list {
		if ev.Kind == kind && (t == "" || ev.Type == t) {
			n++
		}
	}
	return n
}

// resources returns the number of resources that one session sent.
func (e *events) resources(session uint64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, ev := range e.list {
		if ev.Kind == Sent && ev.Session == session {
			n += ev.Resources
		}
	}
	return n
}

// testGlobal is a global on a loopback socket.
type testGlobal struct {
	*Global
	store   store.Store
	address string
	events  *events
	stop    func()
}

func startGlobal(t *testing.T, s store.Store, change ...func(*GlobalConfig)) *testGlobal {
	t.Helper()
	return startGlobalWith(t, s, exchange.OwnFeatures()&^exchange.FeatureTraces, change...)
}

// startGlobalWith starts a global that announces these features, whatever it supports.
func startGlobalWith(t *testing.T, s store.Store, features exchange.Features,
	change ...func(*GlobalConfig)) *testGlobal {
	t.Helper()
	g := &testGlobal{store: s, events: &events{}}
	config := GlobalConfig{Store: s, Log: testLog(), Observer: g.events, Self: Peer{Instance: "global-1"},
		SendTimeout: 5 * time.Second, inspect: checkInvariants(t)}
	for _, c := range change {
		c(&config)
	}
	g.Global = NewGlobal(config)
	if config.Tracer == nil {
		g.config.Self.Features = features
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = l.Addr().String()
	server := grpc.NewServer(ServerOptions()...)
	g.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(Listener(l)) }()
	g.stop = sync.OnceFunc(func() {
		g.Drain()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		g.Wait()
	})
	t.Cleanup(g.stop)
	return g
}

// testZone is a zone that keeps a session with a global.
type testZone struct {
	*Zone
	name   string
	store  store.Store
	events *events
	stop   func()
}

func startZone(t *testing.T, name, target string, s store.Store, change ...func(*ZoneConfig)) *testZone {
	t.Helper()
	return startZoneWith(t, name, target, s, exchange.OwnFeatures()&^exchange.FeatureTraces, change...)
}

// startZoneWith starts a zone that announces these features, whatever it supports.
func startZoneWith(t *testing.T, name, target string, s store.Store, features exchange.Features,
	change ...func(*ZoneConfig)) *testZone {
	t.Helper()
	z := &testZone{name: name, store: s, events: &events{}}
	config := ZoneConfig{
		Zone: name, Target: target, Store: s, Log: testLog(), Observer: z.events, Self: Peer{Instance: name + "-1"},
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond, inspect: checkInvariants(t),
	}
	for _, c := range change {
		c(&config)
	}
	z.Zone = NewZone(config)
	if config.Tracer == nil {
		z.config.Self.Features = features
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- z.Run(ctx) }()
	z.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("zone %s: %v", name, err)
		}
	})
	t.Cleanup(z.stop)
	return z
}

// written returns a resource as its home stores it.
func written(t testing.TB, home resources.Home, key resources.Key, spec any, labels ...string) *resources.Resource {
	t.Helper()
	raw, ok := spec.(string)
	if !ok {
		b, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	parsed, err := resources.NewSpec(key.Type, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Key: key, Spec: parsed, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		r.Labels[labels[i]] = labels[i+1]
	}
	for k, v := range home.ComputedLabels(r) {
		r.Labels[k] = v
	}
	return r
}

func put(t testing.TB, s store.Store, rs ...*resources.Resource) uint64 {
	t.Helper()
	b := store.Batch{}
	for _, r := range rs {
		b.Ops = append(b.Ops, store.Op{Put: r})
	}
	c, err := s.Apply(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return c.Revision
}

func remove(t testing.TB, s store.Store, keys ...resources.Key) {
	t.Helper()
	b := store.Batch{}
	for _, k := range keys {
		b.Ops = append(b.Ops, store.Op{Delete: k})
	}
	if _, err := s.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until holds is true.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	start := time.Now()
	for !holds() {
		waited := time.Since(start)
		if waited > time.Minute {
			t.Fatalf("never happened: %s", what)
		}
		<-time.After(min(max(waited/20, 2*time.Millisecond), 50*time.Millisecond))
	}
}

// find returns the resource of a type with a display name, or nil.
func find(s store.Reader, t resources.Type, name string) *resources.Resource {
	for r := range s.Snapshot().List(store.Query{Type: t}) {
		if r.DisplayName() == name {
			return r
		}
	}
	return nil
}

func count(s store.Reader, t resources.Type) int {
	n := 0
	for range s.Snapshot().List(store.Query{Type: t}) {
		n++
	}
	return n
}

var globalHome = resources.Home{SystemNamespace: resources.DefaultSystemNamespace}

func zoneHome(zone string) resources.Home {
	return resources.Home{Zone: zone, SystemNamespace: resources.DefaultSystemNamespace}
}

// permission returns the key and spec of a small valid permission.
func permission(name string) (resources.Key, string) {
	return resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: name},
		fmt.Sprintf(`{"default":{"allow":[{"spiffeId":{"type":"Exact","value":"spiffe://d/%s"}}]}}`, name)
}
