package xds

import (
	"context"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const goldenService = "kri_msvc_default_zone-1__backend_http"

// watchOf asks for names of a kind, "*" for all, having the versions known.
func watchOf(t *testing.T, s *session, k kind, names ...string) chan cache.DeltaResponse {
	t.Helper()
	out := make(chan cache.DeltaResponse, 10)
	sub := stream.NewDeltaSubscription(names, nil, nil, true)
	if _, err := s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k]}, sub, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRoutesWaitForClusters: a stream of all clusters gets a route only after the clusters that it names, with their
// endpoints and secrets. One that asks for clusters by name gets the route first: it knows the names from there.
func TestRoutesWaitForClusters(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		x := testProxies(storeOf(t, "testdata/network/http.yaml"))
		s := newSession(x)
		if err := s.identify(testNode("caller")); err != nil {
			t.Fatal(err)
		}
		clusters := goldenService
		if all {
			clusters = "*"
		}
		<-watchOf(t, s, kindCluster, clusters)
		endpoints := watchOf(t, s, kindEndpoint, goldenService)
		<-endpoints
		routes := watchOf(t, s, kindRoute, goldenService)
		if got := len(routes); got == 1 == all {
			t.Errorf("all clusters: %t: %d routes before the endpoints of all their clusters", all, got)
		}
		<-watchOf(t, s, kindEndpoint, goldenService, "kri_msvc_default_zone-2__far_80")
		if len(routes) != 1 {
			t.Errorf("all clusters: %t: no routes after the endpoints", all)
		}
		s.end()
	}
}

// TestClustersGoLast: what is no longer used is taken away after the route that named it.
func TestClustersGoLast(t *testing.T) {
	t.Parallel()
	x := testProxies(storeOf(t, "testdata/network/http.yaml"))
	s := newSession(x)
	if err := s.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	defer s.end()
	state := s.proxy.state.Load()
	known := func(k kind) map[string]string {
		out := map[string]string{}
		for _, r := range state.sets[k] {
			out[r.name] = r.version
		}
		return out
	}
	open := func(k kind, names ...string) chan cache.DeltaResponse {
		out := make(chan cache.DeltaResponse, 10)
		sub := stream.NewDeltaSubscription(names, nil, known(k), true)
		if _, err := s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k]}, sub, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	clusters, _ := open(kindCluster, "*"), open(kindEndpoint, "*")
	routes := open(kindRoute, goldenService)
	dp := x.cfg.Store.Snapshot().Get(dataplaneKey("caller")).Clone()
	spec := strings.Replace(string(dp.Spec.JSON()),
		`,{"backendRef":{"kind":"MeshService","labels":{"kuma.io/zone":"zone-2"}},"port":10002}`, "", 1)
	var err error
	if dp.Spec, err = resources.NewSpec(resources.TypeDataplane, []byte(spec)); err != nil {
		t.Fatal(err)
	}
	route := resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "v2"}
	if _, err := x.cfg.Store.(store.Store).Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Put: dp}, {Delete: route}}}); err != nil {
		t.Fatal(err)
	}
	x.catchUp()
	if len(routes) != 1 || len(clusters) != 1 {
		t.Fatalf("%d responses of routes, %d of clusters", len(routes), len(clusters))
	}
	response, _ := (<-clusters).GetDeltaDiscoveryResponse()
	if len(response.RemovedResources) != 1 {
		t.Errorf("removed: %v", response.RemovedResources)
	}
}

// TestForwardersWaitForCollectors: a stream gets a TCP proxy that logs to a collector only after the cluster of that. The
// permissions that it asks for with it do not wait.
func TestForwardersWaitForCollectors(t *testing.T) {
	t.Parallel()
	x := testProxies(storeOf(t, "testdata/network/tcp.yaml"))
	s := newSession(x)
	if err := s.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	defer s.end()
	<-watchOf(t, s, kindCluster, "*")
	logs := testHome.Labelled(testResource(resources.Key{Type: resources.TypeMeshAccessLog, Mesh: "default", Name: "logs"}, nil,
		map[string]any{"to": []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"},
			"default": map[string]any{"backends": []any{map[string]any{"type": "OpenTelemetry",
				"openTelemetry": map[string]any{"endpoint": "192.0.2.9:4317"}}}}}}}))
	if _, err := x.cfg.Store.(store.Store).Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Put: logs}}}); err != nil {
		t.Fatal(err)
	}
	x.catchUp()
	var permissions string
	for _, r := range s.proxy.state.Load().sets[kindExtension] {
		if strings.Contains(r.name, "rbac") {
			permissions = r.name
		}
	}
	response, _ := (<-watchOf(t, s, kindExtension, databaseForwarder, permissions)).GetDeltaDiscoveryResponse()
	if got := response.GetResources(); len(got) != 1 || got[0].GetName() != permissions {
		t.Errorf("before the cluster: %v", got)
	}
	forwarders := watchOf(t, s, kindExtension, databaseForwarder)
	if len(forwarders) != 0 {
		t.Error("the forwarder is sent before the cluster of its collector")
	}
	<-watchOf(t, s, kindCluster, "*")
	if len(forwarders) != 1 {
		t.Error("the forwarder is not sent after the cluster")
	}
}

// TestForwardersWaitForSecrets: a stream gets a TCP proxy only after the identities of all servers. Without them a new
// cluster is not ready, and connections to it would end.
func TestForwardersWaitForSecrets(t *testing.T) {
	t.Parallel()
	x := testProxies(storeOf(t, "testdata/network/tcp.yaml"))
	s := newSession(x)
	if err := s.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	defer s.end()
	state := *s.proxy.state.Load()
	for _, r := range state.sets[kindEndpoint] {
		name := identitiesOf(clusterOf(r.name))
		state.sets[kindSecret] = append(state.sets[kindSecret], &resource{name: name, version: "1", delta: &discovery.Resource{Name: name, Version: "1"}})
	}
	s.proxy.state.Store(&state)
	names := func(k kind) (out []string) {
		for _, r := range state.sets[k] {
			out = append(out, r.name)
		}
		return out
	}
	<-watchOf(t, s, kindCluster, "*")
	<-watchOf(t, s, kindEndpoint, names(kindEndpoint)...)
	<-watchOf(t, s, kindSecret, names(kindSecret)[0])
	forwarders := watchOf(t, s, kindExtension, databaseForwarder)
	if len(forwarders) != 0 {
		t.Error("the forwarder is sent before the identities of a server")
	}
	<-watchOf(t, s, kindSecret, names(kindSecret)...)
	if len(forwarders) != 1 {
		t.Error("the forwarder is not sent after the identities")
	}
}

// databaseForwarder is the TCP proxy to the service of testdata/network/tcp.yaml.
const databaseForwarder = "kri_msvc_default_zone-1__db_5432" + forwards

// TestClustersGoAfterForwarders: a cluster goes only after the TCP proxy that sent to it has been replaced. No listener
// moves with a MeshTCPRoute.
func TestClustersGoAfterForwarders(t *testing.T) {
	t.Parallel()
	x := testProxies(storeOf(t, "testdata/network/tcp.yaml"))
	s := newSession(x)
	if err := s.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	defer s.end()
	x.catchUp()
	state := s.proxy.state.Load()
	open := func(k kind, names ...string) chan cache.DeltaResponse {
		known := map[string]string{}
		for _, r := range state.sets[k] {
			known[r.name] = r.version
		}
		out := make(chan cache.DeltaResponse, 10)
		if _, err := s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k]},
			stream.NewDeltaSubscription(names, nil, known, true), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	clusters, _, listeners := open(kindCluster, "*"), open(kindEndpoint, "*"), open(kindListener, "*")
	<-watchOf(t, s, kindExtension, databaseForwarder) // and the proxy does not answer yet
	route := resources.Key{Type: resources.TypeMeshTCPRoute, Mesh: "default", Name: "split"}
	if _, err := x.cfg.Store.(store.Store).Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Delete: route}}}); err != nil {
		t.Fatal(err)
	}
	x.catchUp()
	if len(listeners) != 0 || len(clusters) != 0 {
		t.Fatalf("%d responses of listeners, and %d of clusters before the forwarder", len(listeners), len(clusters))
	}
	if forwarders := open(kindExtension, databaseForwarder); len(forwarders) != 1 || len(clusters) != 1 {
		t.Fatalf("%d responses of forwarders, and %d of clusters after it", len(forwarders), len(clusters))
	}
	response, _ := (<-clusters).GetDeltaDiscoveryResponse()
	if len(response.RemovedResources) != 1 {
		t.Errorf("removed: %v", response.RemovedResources)
	}
}
