package xds

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

var testHome = resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}

// testBox seals for all tests; its key is in no file any more.
var testBox = sync.OnceValue(func() *secrets.Box {
	dir, err := os.MkdirTemp("", "causeway-xds-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return box
})

func testProxies(s store.Store) *Proxies {
	return New(Config{
		Store: s, Status: store.NewMemory(), Home: testHome, Log: slog.New(slog.DiscardHandler),
		Authorities: identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(store.NewMemory(), testBox()),
			Zone: testHome.Zone}),
	})
}

func testResource(key resources.Key, labels map[string]string, spec any) *resources.Resource {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	s, err := resources.NewSpec(key.Type, raw)
	if err != nil {
		panic(err)
	}
	return testHome.Labelled(&resources.Resource{Key: key, Spec: s, Labels: labels})
}

func dataplaneKey(name string) resources.Key {
	return resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}
}

// connect is a stream without a network.
func connect(x *Proxies, name string) *session {
	s := newSession(x)
	if err := s.identify(testNode(name)); err != nil {
		panic(err)
	}
	return s
}

// watchAll opens a wildcard watch of a kind.
func watchAll(s *session, k kind) chan cache.DeltaResponse {
	out := make(chan cache.DeltaResponse, 10)
	sub := stream.NewDeltaSubscription([]string{"*"}, nil, nil, true)
	if _, err := s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k]}, sub, out); err != nil {
		panic(err)
	}
	return out
}

// TestChangesLeadWhereABuildFromScratchDoes: whatever happens to Dataplanes and permissions, worked in one by one or
// after a gap, each connected proxy has what a new connection would get, and no other proxy was built than those it
// concerns.
func TestChangesLeadWhereABuildFromScratchDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := store.NewMemoryWith(store.ViewConfig{WindowCommits: 8})
		x := testProxies(s)
		sessions := map[string]*session{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		colour := rapid.SampledFrom([]string{"red", "blue", "green"})
		apply := func(op store.Op) {
			if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"dataplane": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					apply(store.Op{Delete: dataplaneKey(name)})
					return
				}
				port := rapid.IntRange(1, 3).Draw(t, "port") // 3 cannot be built
				apply(store.Op{Put: testResource(dataplaneKey(name),
					map[string]string{"colour": colour.Draw(t, "colour")}, map[string]any{"networking": map[string]any{
						"address": "127.0.0.1", "inbound": []any{map[string]any{"name": "main", "port": port, "servicePort": 3}}}})})
			},
			"permission": func(t *rapid.T) {
				key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
					Name: rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "policy")}
				target := map[string]any{"kind": "Dataplane"}
				switch rapid.IntRange(0, 5).Draw(t, "target") {
				case 0:
					apply(store.Op{Delete: key})
					return
				case 1:
					target["kind"] = "Mesh"
				case 2:
					target["name"] = names.Draw(t, "target name")
				case 3:
					target["labels"] = map[string]any{"colour": colour.Draw(t, "target colour"), resources.LabelZone: "zone-1"}
				case 4:
					target["sectionName"] = "main"
				}
				id := fmt.Sprintf("spiffe://td/%d", rapid.IntRange(0, 3).Draw(t, "id"))
				apply(store.Op{Put: testResource(key, nil,
					map[string]any{"targetRef": target, "rules": []any{map[string]any{"default": map[string]any{
						"allow": []any{map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": id}}}}}}})})
			},
			"service": func(t *rapid.T) {
				key := resources.Key{Type: resources.TypeMeshService, Mesh: "default",
					Name: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "service")}
				if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
					apply(store.Op{Delete: key})
					return
				}
				apply(store.Op{Put: testResource(key, nil, map[string]any{
					"selector": map[string]any{"dataplaneRef": map[string]any{"name": names.Draw(t, "name")}},
					"ports": []any{map[string]any{"port": 80, "targetPort": "main",
						"appProtocol": rapid.SampledFrom([]string{"http", "grpc", "tcp"}).Draw(t, "protocol")}}})})
			},
			"connect": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if sessions[name] == nil {
					sessions[name] = connect(x, name)
				}
			},
			"disconnect": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if sessions[name] != nil {
					sessions[name].end()
					delete(sessions, name)
				}
			},
			"catch up": func(*rapid.T) { x.catchUp() },
			"": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "behind") {
					return
				}
				x.catchUp()
				for name, session := range sessions {
					checkAgainstScratch(t, s.Snapshot(), name, session.proxy)
				}
			},
		})
		for _, session := range sessions {
			session.end()
		}
		if len(x.proxies)+len(x.meshes)+len(x.renewals.of) > 0 {
			t.Errorf("left behind: %d proxies, %d meshes, %d renewals", len(x.proxies), len(x.meshes), len(x.renewals.of))
		}
	})
}

// checkAgainstScratch compares a proxy with what all policies of the snapshot make of its Dataplane.
func checkAgainstScratch(t *rapid.T, snap store.Snapshot, name string, p *proxy) {
	dp := snap.Get(dataplaneKey(name))
	have := p.state.Load()
	if dp == nil {
		if have != nil && len(have.sets[kindListener]) > 0 {
			t.Fatalf("%s has listeners without a Dataplane", name)
		}
		return
	}
	target, err := newTarget(dp, neighbours(snap, dp), false)
	if err != nil {
		return // it keeps what it had
	}
	var policies []*matching.Policy
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission, Mesh: "default"}) {
		policies = append(policies, matching.NewPolicy(r, testHome.SystemNamespace))
	}
	var before accesses
	if have != nil {
		before = have.accesses
	}
	want, err := buildAll(target, policies, nil, before)
	if err != nil {
		t.Fatal(err)
	}
	for k := range kinds {
		if have == nil || !have.sets[k].equal(want.sets[k]) {
			t.Fatalf("%s: %s differs from a build from scratch", name, k)
		}
	}
}

func TestIdentitiesAreRenewedAtHalfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		apply := func(op store.Op) {
			t.Helper()
			if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		const n = 20
		for i := range n {
			apply(store.Op{Put: testResource(dataplaneKey(fmt.Sprintf("dp-%d", i)), nil,
				map[string]any{"networking": map[string]any{"address": "127.0.0.1"}})})
		}
		x := testProxies(s)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- x.Run(ctx) }()
		sessions, versions := make([]*session, n), make([]string, n)
		read := func(i int) string {
			select {
			case r := <-watchAll(sessions[i], kindSecret):
				response, _ := r.GetDeltaDiscoveryResponse()
				return response.Resources[0].Version
			default:
				t.Fatalf("no secret for %d", i)
				return ""
			}
		}
		for i := range n {
			sessions[i] = connect(x, fmt.Sprintf("dp-%d", i))
			versions[i] = read(i)
			time.Sleep(time.Minute)
		}
		sessions[3].end() // its renewal is forgotten
		waiting := sessions[5]
		out := make(chan cache.DeltaResponse, 10)
		sub := stream.NewDeltaSubscription([]string{waiting.proxy.names.identity}, nil,
			map[string]string{waiting.proxy.names.identity: versions[5]}, true)
		if _, err := waiting.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[kindSecret]}, sub,
			out); err != nil {
			t.Fatal(err)
		}
		time.Sleep(identity.Lifetime/2 - (n+1)*time.Minute)
		synctest.Wait()
		for i := range n {
			if i != 3 && i != 5 && read(i) != versions[i] {
				t.Errorf("%d renewed before half of its life", i)
			}
		}
		time.Sleep((n + 2) * time.Minute)
		synctest.Wait()
		for i := range n {
			if i != 3 && i != 5 && read(i) == versions[i] {
				t.Errorf("%d not renewed after half of its life", i)
			}
		}
		if len(out) != 1 {
			t.Errorf("the stream that asked by name got %d responses, want 1", len(out))
		}
		if len(x.renewals.of) != n-1 {
			t.Errorf("%d renewals planned, want %d", len(x.renewals.of), n-1)
		}
		for i, s := range sessions {
			if i != 3 {
				s.end()
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
