package xds

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestBacklog: however far behind the zone is, proxies that come and go have their turn, and a proxy is built once for
// all the commits between two turns.
func TestBacklog(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	x := testProxies(s)
	apply := func(op store.Op) {
		t.Helper()
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	apply(store.Op{Put: testResource(dataplaneKey("a"), nil, map[string]any{"networking": map[string]any{
		"address": "127.0.0.1", "inbound": []any{map[string]any{"name": "main", "port": 1, "servicePort": 2}}}})})
	x.catchUp()
	stream := connect(x, "a")
	defer stream.end()
	allow := func(id string) {
		apply(store.Op{Put: testResource(resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: "p"}, nil,
			map[string]any{"rules": []any{map[string]any{"default": map[string]any{"allow": []any{
				map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": "spiffe://td/" + id}}}}}}})})
	}
	before := testutil.ToFloat64(x.metrics.builds)
	for i := range 2*commitsAtOnce + 10 {
		allow(fmt.Sprintf("id-%d", i))
	}
	for turn, more := range []bool{true, true, false} {
		if x.catchUpSome() != more {
			t.Fatalf("turn %d: there are more: %v", turn+1, !more)
		}
		connect(x, fmt.Sprintf("other-%d", turn)).end()
	}
	if builds := testutil.ToFloat64(x.metrics.builds) - before; builds != 3 {
		t.Errorf("the proxy was built %v times in 3 turns", builds)
	}
	if x.since != s.Snapshot().Revision() {
		t.Errorf("worked in up to revision %d of %d", x.since, s.Snapshot().Revision())
	}
}
