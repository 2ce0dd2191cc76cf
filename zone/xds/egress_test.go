package xds

import (
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// stateWith returns the state of the proxy of caller, and its problems with what it sends, for a store with more in it.
func stateWith(t *testing.T, file string, more ...*resources.Resource) (*state, string) {
	t.Helper()
	s := storeOf(t, file)
	for _, r := range more {
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	session := newSession(testProxies(s))
	defer session.end()
	if err := session.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	return session.proxy.state.Load(), session.proxy.record.problems[problemOutbounds]
}

func egressDataplane(name, address, state string) *resources.Resource {
	return testResource(dataplaneKey(name), nil, map[string]any{"networking": map[string]any{"address": address,
		"listeners": []any{map[string]any{"type": "ZoneEgress", "port": 10002, "name": "out", "state": state}}}})
}

// TestEgressesThatAreNotReady: a listener that its Dataplane calls not ready gets no connections, and if there is no other
// the callers are told that there is no egress.
func TestEgressesThatAreNotReady(t *testing.T) {
	t.Parallel()
	const file = "testdata/network/by_egress.yaml"
	addresses := func(s *state) string {
		var out strings.Builder
		for _, r := range s.served(kindEndpoint) {
			out.Write(asYAML(t, r))
		}
		return out.String()
	}
	s, problems := stateWith(t, file, egressDataplane("out-2", "192.0.2.8", "Ready"), egressDataplane("out-3", "192.0.2.9", "NotReady"))
	if all := addresses(s); !strings.Contains(all, "192.0.2.7") || !strings.Contains(all, "192.0.2.8") || strings.Contains(all, "192.0.2.9") || problems != "" {
		t.Errorf("problems %q, endpoints %s", problems, all)
	}
	s, problems = stateWith(t, file, egressDataplane("out-1", "192.0.2.7", "NotReady"))
	if all := addresses(s); strings.Contains(all, "192.0.2.7") || !strings.Contains(problems, "this zone has none") {
		t.Errorf("problems %q, endpoints %s", problems, all)
	}
}

// TestServicesOfOneServerName: Envoy refuses a listener with one server name in two chains. Of two services with one, the
// egress leads to one, and says which it leaves out.
func TestServicesOfOneServerName(t *testing.T) {
	t.Parallel()
	external := func(namespace, name string) *resources.Resource {
		return testResource(resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Namespace: namespace, Name: name}, nil,
			map[string]any{"match": map[string]any{"port": 443}, "endpoints": []any{map[string]any{"address": "192.0.2.11", "port": 443}}})
	}
	s, problems := stateWith(t, "testdata/network/egress.yaml", external("", "shop.till"), external("shop", "till"))
	listener, seen := &listenerv3.Listener{}, map[string]string{}
	if all := s.served(kindListener); len(all) != 1 {
		t.Fatalf("%d listeners", len(all))
	} else if err := all[0].delta.GetResource().UnmarshalTo(listener); err != nil {
		t.Fatal(err)
	}
	for _, chain := range listener.GetFilterChains() {
		for _, name := range chain.GetFilterChainMatch().GetServerNames() {
			if other := seen[name]; other != "" {
				t.Errorf("%s leads to %s and to %s", name, other, chain.GetName())
			}
			seen[name] = chain.GetName()
		}
	}
	if len(seen) != 3 || !strings.Contains(problems, "the egress does not reach it: it has the server name of kri_extsvc_default_") {
		t.Errorf("chains %v, problems %q", seen, problems)
	}
}
