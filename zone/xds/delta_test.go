package xds_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

const (
	mainListener = "self_inbound_dp_main"
	mainFilter   = "self_inbound_dp_main_rbac_http"
	ownIdentity  = "identity_cert:default/backend"
	meshTrust    = "identity_trust:default"
)

// connected is a proxy of the Dataplane backend with everything but secrets.
func (z *zoneServer) connected() *deltaClient {
	z.t.Helper()
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.next(cds)
	c.subscribe(nil, lds, "*")
	c.next(lds)
	c.subscribe(nil, ecds, mainFilter)
	c.next(ecds)
	return c
}

func TestDeltaAnswersWhenTheDataplaneAppears(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.subscribe(nil, lds, "*")
	z.dataplane("frontend", httpInbound) // not ours
	z.dataplane("backend", httpInbound)
	if got := names(c.next(cds)); !slices.Equal(got, []string{mainListener}) {
		t.Errorf("clusters %v", got)
	}
	r := c.next(lds)
	if got := names(r); !slices.Equal(got, []string{mainListener}) {
		t.Fatalf("listeners %v", got)
	}
	listener := &listenerv3.Listener{}
	must(t, proto.Unmarshal(r.Resources[0].Resource.Value, listener))
	must(t, listener.Validate())
	if len(listener.FilterChains) != 1 || listener.FilterChains[0].TransportSocket == nil ||
		listener.DefaultFilterChain != nil {
		t.Errorf("want one filter chain, with TLS: %v", listener)
	}
	c.subscribe(nil, ecds, mainFilter)
	if got := names(c.next(ecds)); !slices.Equal(got, []string{mainFilter}) {
		t.Errorf("extensions %v", got)
	}
}

func TestDeltaSendsOnlyWhatAChangeConcerns(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("frontend", httpInbound)
	c := z.connected()
	z.permission("other", "frontend", "spiffe://td/ours")
	z.permission("ours", "backend", "spiffe://td/marker-1")
	if r := c.next(ecds); !strings.Contains(string(r.Resources[0].Resource.Value), "marker-1") {
		t.Errorf("the first response is about something else")
	}
	z.put(resources.TypeMeshTrafficPermission, "ours",
		`{"targetRef": {"kind": "Dataplane", "labels": {"app": "frontend"}}, "rules": [{"default": {}}]}`, nil)
	if r := c.next(ecds); strings.Contains(string(r.Resources[0].Resource.Value), "marker-1") {
		t.Error("a permission that went elsewhere still holds here")
	}
	z.put(resources.TypeMeshTrafficPermission, "wide", `{"targetRef": {"kind": "Mesh"}, "rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "spiffe://td/wide"}}]}}]}`, nil)
	c.next(ecds)
	z.delete(resources.TypeMeshTrafficPermission, "wide")
	c.next(ecds)
	// The same content again is no change.
	z.dataplane("backend", httpInbound)
	z.permission("ours", "backend", "spiffe://td/marker-2")
	c.next(ecds)
	c.nothing()
}

func TestDeltaResumes(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.permission("ours", "backend", "spiffe://td/a")
	first := z.connected()
	first.close()
	for _, restart := range []bool{false, true} {
		if restart {
			z.stop()
			z.start()
		}
		c := z.delta()
		c.send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("backend", ""), TypeUrl: cds,
			ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: first.versions[cds]})
		c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: lds, ResourceNamesSubscribe: []string{"*"},
			InitialResourceVersions: first.versions[lds]})
		c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: ecds, ResourceNamesSubscribe: []string{mainFilter},
			InitialResourceVersions: first.versions[ecds]})
		z.permission("ours", "backend", "spiffe://td/after-"+map[bool]string{true: "restart", false: "reconnect"}[restart])
		// The change is the first thing that comes, unless it was there before the subscription.
		first.versions[ecds][mainFilter] = c.next(ecds).Resources[0].Version
		c.nothing()
		c.close()
	}
	// What is gone meanwhile is removed on the next connection.
	z.dataplane("backend", `{"name": "other", "port": 8081, "servicePort": 9080}`)
	c := z.delta()
	c.send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("backend", ""), TypeUrl: lds,
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: first.versions[lds]})
	if r := c.next(lds); !slices.Equal(r.RemovedResources, []string{mainListener}) ||
		!slices.Equal(names(r), []string{"self_inbound_dp_other"}) {
		t.Errorf("got %v, removed %v", names(r), r.RemovedResources)
	}
}

func TestDeltaRemovesADeletedDataplane(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool { return len(i.GetSubscriptions()) == 1 })
	z.delete(resources.TypeDataplane, "backend")
	if r := c.next(lds); !slices.Equal(r.RemovedResources, []string{mainListener}) {
		t.Errorf("listeners removed: %v", r.RemovedResources)
	}
	if r := c.next(cds); !slices.Equal(r.RemovedResources, []string{mainListener}) {
		t.Errorf("clusters removed: %v", r.RemovedResources)
	}
	z.dataplane("backend", httpInbound)
	c.next(cds)
	c.next(lds)
}

func TestABrokenDataplaneKeepsItsLastConfig(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.dataplane("backend", `{"name": "main", "port": 8080, "servicePort": 8080}`) // proxy and application at one place
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		return strings.Contains(i.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()["config"].GetStringValue(), "127.0.0.1:8080")
	})
	c.nothing()
	z.dataplane("backend", `{"name": "main", "port": 8080, "servicePort": 9081, "protocol": "http"}`)
	c.next(cds)
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool { return i.GetMetadata() == nil })
	c.nothing()
}

func TestIgnoredInboundHasNoListener(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", `{"port": 8080, "servicePort": 9080, "state": "Ignored"}, {"port": 8081, "servicePort": 9081, "state": "NotReady"}`)
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), lds, "*")
	if got := names(c.next(lds)); !slices.Equal(got, []string{"self_inbound_dp_8081"}) {
		t.Errorf("listeners %v", got)
	}
	z.dataplane("frontend", "")
	c = z.delta()
	c.subscribe(nodeOf("frontend", ""), lds, "*")
	if r := c.next(lds); len(r.Resources)+len(r.RemovedResources) != 0 {
		t.Errorf("got %v", r)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.trust()
	z.dataplane("backend", httpInbound)
	z.dataplane("frontend", httpInbound)
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), sds, ownIdentity)
	if r := c.next(sds); !slices.Equal(names(r), []string{ownIdentity}) ||
		!strings.Contains(string(r.Resources[0].Resource.Value), "PRIVATE KEY") {
		t.Errorf("got %v", names(r))
	}
	// Each way of asking for what is another's gets no answer.
	c.subscribe(nil, sds, "identity_cert:default/frontend", "identity_cert:other/backend", "identity_trust:other",
		"identity_cert:", "../frontend")
	c.subscribe(nil, sds, meshTrust)
	if r := c.next(sds); !slices.Equal(names(r), []string{meshTrust}) {
		t.Errorf("got %v", names(r))
	}
	wild := z.delta()
	wild.subscribe(nodeOf("backend", ""), sds, "*")
	if got := names(wild.next(sds)); !slices.Equal(got, []string{ownIdentity, meshTrust}) {
		t.Errorf("all secrets: %v", got)
	}
	// A new label makes a new identity, at once.
	z.put(resources.TypeDataplane, "backend", `{"networking": {"address": "127.0.0.1"}}`,
		map[string]string{resources.LabelWorkload: "shop"})
	if got := names(c.next(sds)); !slices.Equal(got, []string{ownIdentity}) {
		t.Errorf("got %v", got)
	}
	i := z.insight("backend",
		func(i *meshpb.DataplaneInsight) bool { return i.GetMTLS().GetCertificateRegenerations() == 2 })
	if !i.GetMTLS().GetCertificateExpirationTime().IsValid() {
		t.Errorf("insight %v", i)
	}
	// Trust: only those that asked, and only once.
	z.put(resources.TypeMeshTrust, "garbage",
		`{"trustDomain": "x.example", "caBundles": [{"type": "Pem", "pem": {"value": "x"}}]}`, nil)
	z.delete(resources.TypeMeshTrust, "garbage")
	z.permission("ours", "backend", "spiffe://td/a")
	c.nothing()
}

func TestAStreamIsForOneProxy(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("frontend", httpInbound)
	c := z.connected()
	c.subscribe(nodeOf("frontend", ""), sds, "identity_cert:default/frontend")
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another node id: %v", err)
	}
	c = z.connected()
	c.subscribe(nodeOf("backend", "elsewhere"), cds)
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another namespace: %v", err)
	}
	for _, id := range []string{"", "backend", ".", "default.", strings.Repeat("a", 400)} {
		c := z.delta()
		node := nodeOf("backend", "")
		node.Id = id
		c.subscribe(node, cds, "*")
		if err := c.fails(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("node id %.20q: %v", id, err)
		}
	}
	c = z.delta()
	c.subscribe(nil, cds, "*")
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no node: %v", err)
	}
}
