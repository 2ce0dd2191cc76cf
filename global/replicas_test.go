package global

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
)

// TestWhatCouldNotBeToldIsToldLater checks deletions, and a zone whose replica died, while the shared state cannot be
// written: once it can, they are removed from the shared state and shown as offline.
func TestWhatCouldNotBeToldIsToldLater(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	durable, err := backend.Open(t.Context(), backend.Config{Kind: backend.Etcd, Endpoints: cluster.Endpoints(),
		Prefix: "/test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = durable.Close() }()
	claims, status := store.NewMemory(), store.NewMemory()
	put := func(s store.Store, r *resources.Resource, spec string) {
		t.Helper()
		var err error
		if r.Spec, err = resources.NewSpec(r.Type, []byte(spec)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(claims, &resources.Resource{Key: kds.ClaimKey("own"), Labels: map[string]string{}}, `{"replica":"me"}`)
	put(claims, &resources.Resource{Key: kds.ClaimKey("lost"), Labels: map[string]string{}}, `{"replica":"dead"}`)
	r := newReplicas(&Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, replicaParts{durable: durable, instance: "me",
		status: status, sync: kds.NewGlobal(kds.GlobalConfig{Store: claims, Status: status, Replica: "me"})})
	r.sync.Adopt("lost", &tracker.ZoneState{Connected: true, Since: time.Now()})
	r.present = []replica{{Instance: "me"}}
	r.remote["lost"] = remoteZone{replica: "dead", connected: true}
	insight := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "gone"}
	put(status, &resources.Resource{Key: insight, Labels: map[string]string{resources.LabelZone: "own"}}, `{}`)

	inSharedState := func(what string) bool {
		return strings.Contains(strings.Join(cluster.Keys(t), "\n"), what)
	}
	r.present = nil // no replica leads yet
	seen, err := r.publish(t.Context(), 0)
	if err != nil || !inSharedState("zones/own/r/") {
		t.Fatalf("the insight is not in the shared state: %v", err)
	}
	if _, err := status.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: insight}}}); err != nil {
		t.Fatal(err)
	}
	r.present = []replica{{Instance: "me"}}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.publish(cut, seen); err == nil {
		t.Fatal("told without etcd")
	}
	if _, err := r.publish(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	if inSharedState("zones/own/r/") {
		t.Error("what is gone stays in the shared state")
	}
	if !inSharedState("zones/lost/state") {
		t.Error("a zone whose replica died is not said to be away")
	}
}
