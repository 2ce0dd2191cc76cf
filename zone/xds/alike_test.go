package xds

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

// inboundOf writes a Dataplane with one HTTP inbound.
func inboundOf(t *testing.T, s store.Store, name, address string, servicePort int) {
	t.Helper()
	dp := testResource(dataplaneKey(name), nil, map[string]any{"networking": map[string]any{"address": address,
		"inbound": []any{map[string]any{"name": "main", "port": 80, "servicePort": servicePort, "protocol": "http"}}}})
	if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: dp}}}); err != nil {
		t.Fatal(err)
	}
}

func TestProxiesShareResourcesThatAreAlike(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	x := testProxies(s)
	inboundOf(t, s, "a", "192.0.2.1", 8080)
	inboundOf(t, s, "b", "192.0.2.2", 8080)
	inboundOf(t, s, "c", "192.0.2.3", 9090)
	x.catchUp()
	sessions := map[string]*session{}
	for _, name := range []string{"a", "b", "c"} {
		sessions[name] = connect(x, name)
	}
	of := func(name string, k kind) *resource { return sessions[name].proxy.state.Load().served(k)[0] }
	for _, k := range alikeKinds {
		if of("a", k) != of("b", k) {
			t.Errorf("two proxies have the same %s twice", k)
		}
	}
	if of("a", kindRoute) != of("c", kindRoute) || of("a", kindCluster) == of("c", kindCluster) {
		t.Error("the routes are the same and the clusters are not, and the proxies have something else")
	}
	if of("a", kindListener) == of("b", kindListener) {
		t.Error("two proxies listen on one address")
	}

	inboundOf(t, s, "b", "192.0.2.2", 9090) // b leaves a, and joins c
	x.catchUp()
	if of("b", kindCluster) != of("c", kindCluster) || of("a", kindCluster) == of("b", kindCluster) {
		t.Error("after a change, the proxy does not share what it has now")
	}

	for _, one := range sessions {
		one.end()
	}
	clear(sessions)
	for deadline := time.Now().Add(10 * time.Second); x.shared.alike.size() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d resources of no proxy are remembered", x.shared.alike.size())
		}
	}
}
