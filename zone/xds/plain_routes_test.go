package xds

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestRoutesWithoutAMeshHTTPRouteAreKept: a change of a policy that says nothing about requests leaves the routes of an
// outbound, and is in effect; one about requests does not.
func TestRoutesWithoutAMeshHTTPRouteAreKept(t *testing.T) {
	t.Parallel()
	s := storeOfChanges(t, 2)
	x := testProxies(s)
	session := connectWhole(t, x, "dp-1")
	t.Cleanup(session.end)
	plan := func() *plan { return session.proxy.state.Load().sending.plan }
	if len(plan().plain) == 0 {
		t.Fatal("no outbound has routes of its own alone")
	}
	for _, c := range []struct {
		typ  resources.Type
		kept bool
	}{{resources.TypeMeshCircuitBreaker, true}, {resources.TypeMeshHealthCheck, true}, {resources.TypeMeshRetry, false},
		{resources.TypeMeshTimeout, false}, {resources.TypeMeshLoadBalancingStrategy, false}} {
		typ := c.typ
		confOf(t, typ, "to").putOne(t, s, "dp-1", 1)
		x.catchUp()
		before := plan()
		confOf(t, typ, "to").putOne(t, s, "dp-1", 2)
		x.catchUp()
		now := plan()
		if now == before {
			t.Errorf("%s: a change has no effect", typ)
		}
		if (now.plain[0] == before.plain[0]) != c.kept {
			t.Errorf("%s: the routes of the outbound are the same: %v, want %v", typ, !c.kept, c.kept)
		}
	}
	confOf(t, resources.TypeMeshHTTPRoute, "to").putOne(t, s, "dp-1", 1)
	if x.catchUp(); len(plan().plain) != 0 {
		t.Error("a MeshHTTPRoute for the outbound's service leaves its routes")
	}
}
