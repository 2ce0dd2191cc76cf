package xds_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// sotwClient is a proxy that speaks state-of-the-world ADS.
type sotwClient struct {
	received[*discovery.DiscoveryResponse]
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

func (z *zoneServer) sotw() *sotwClient {
	z.t.Helper()
	api, closeConn := z.dial()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := api.StreamAggregatedResources(ctx)
	must(z.t, err)
	c := &sotwClient{stream: stream}
	c.follow(z.t, stream.Recv, cancel, closeConn)
	return c
}

func (c *sotwClient) request(node *corev3.Node, typeURL, version string, names ...string) {
	c.t.Helper()
	must(c.t, c.stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: typeURL, VersionInfo: version,
		ResourceNames: names}))
}

// next is the next response, acknowledged for the same names, or refused where refuse is not empty.
func (c *sotwClient) next(typeURL, refuse string, names ...string) *discovery.DiscoveryResponse {
	c.t.Helper()
	select {
	case r := <-c.responses:
		if r.TypeUrl != typeURL {
			c.t.Fatalf("got type %s, want %s", r.TypeUrl, typeURL)
		}
		answer := &discovery.DiscoveryRequest{TypeUrl: typeURL, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce,
			ResourceNames: names}
		if refuse != "" {
			answer.VersionInfo, answer.ErrorDetail = "", &statuspb.Status{Code: 3, Message: refuse}
		}
		must(c.t, c.stream.Send(answer))
		return r
	case err := <-c.err:
		c.t.Fatalf("the stream ended: %v", err)
	case <-time.After(patience):
		c.t.Fatalf("no response of type %s", typeURL)
	}
	return nil
}

func (c *sotwClient) nothing() {
	c.t.Helper()
	select {
	case r := <-c.responses:
		c.t.Fatalf("got a response of type %s with %d resources, want none", r.TypeUrl, len(r.Resources))
	default:
	}
}

func TestSotW(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.trust()
	c := z.sotw()
	c.request(envoyOf("backend"), cds, "")
	c.request(nil, lds, "")
	z.dataplane("backend", httpInbound)
	if r := c.next(cds, ""); len(r.Resources) != 1 {
		t.Fatalf("clusters %d", len(r.Resources))
	}
	listeners := c.next(lds, "")
	if len(listeners.Resources) != 1 {
		t.Fatalf("listeners %d", len(listeners.Resources))
	}
	c.request(nil, ecds, "", mainFilter)
	filters := c.next(ecds, "", mainFilter)
	c.request(nil, sds, "", ownIdentity, meshTrust, "identity_cert:default/frontend")
	if r := c.next(sds, "", ownIdentity, meshTrust, "identity_cert:default/frontend"); len(r.Resources) != 2 {
		t.Fatalf("secrets %d", len(r.Resources))
	}

	z.permission("ours", "backend", "spiffe://td/marker")
	if r := c.next(ecds, "no, thank you", mainFilter); !strings.Contains(string(r.Resources[0].Value), "marker") ||
		r.VersionInfo == filters.VersionInfo {
		t.Error("the change is not in the response")
	}
	z.permission("other", "frontend", "spiffe://td/other")
	z.permission("ours", "backend", "spiffe://td/second")
	latest := c.next(ecds, "", mainFilter)
	if !strings.Contains(string(latest.Resources[0].Value), "second") {
		t.Error("a refused response was sent again")
	}
	c.nothing()
	c.close()

	// A proxy that has everything is sent nothing, by a new process neither.
	z.stop()
	z.start()
	c = z.sotw()
	c.request(envoyOf("backend"), lds, listeners.VersionInfo)
	c.request(nil, ecds, latest.VersionInfo, mainFilter)
	z.permission("ours", "backend", "spiffe://td/third") // the first thing that comes
	c.next(ecds, "", mainFilter)
	z.delete(resources.TypeDataplane, "backend")
	if r := c.next(lds, ""); len(r.Resources) != 0 {
		t.Errorf("%d listeners of a deleted dataplane", len(r.Resources))
	}
	c.nothing()
}

// TestRepeatedNonceAnswersNothing: a client that asks for other names repeats the nonce that it answered last. It is no
// answer to what was sent since, takes nothing back that was refused, and neither does a nonce that nobody gave out.
func TestRepeatedNonceAnswersNothing(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.trust()
	z.dataplane("backend", httpInbound)
	c := z.sotw()
	c.request(envoyOf("backend"), cds, "")
	c.next(cds, "")
	c.request(nil, lds, "")
	c.next(lds, "")
	c.request(nil, ecds, "", mainFilter)
	first := c.next(ecds, "", mainFilter)
	again := func(nonce string, names ...string) {
		c.t.Helper()
		must(t, c.stream.Send(&discovery.DiscoveryRequest{TypeUrl: ecds, VersionInfo: first.VersionInfo,
			ResponseNonce: nonce, ResourceNames: names}))
	}
	behind := func() bool {
		return slices.ContainsFunc(z.proxies.SyncStatuses(), func(s xds.SyncStatus) bool { return s.Behind })
	}
	z.eventually("the proxy to be settled", func() bool { return !behind() })
	for range 3 {
		again(first.Nonce, mainFilter, "another")
		again("no nonce of ours", mainFilter)
	}
	z.permission("ours", "backend", "spiffe://td/refused")
	c.next(ecds, "no", mainFilter)
	again(first.Nonce, mainFilter)
	z.eventually("the refusal to be known", func() bool {
		return slices.ContainsFunc(z.proxies.SyncStatuses(), func(s xds.SyncStatus) bool { return strings.HasSuffix(s.Reason, ": no") })
	})
	z.permission("ours", "backend", "spiffe://td/unanswered")
	select {
	case r := <-c.responses:
		again(first.Nonce, mainFilter, "another")
		if !behind() {
			t.Error("what was not answered counts as enforced")
		}
		must(t, c.stream.Send(&discovery.DiscoveryRequest{TypeUrl: ecds, VersionInfo: r.VersionInfo,
			ResponseNonce: r.Nonce, ResourceNames: []string{mainFilter}}))
	case <-time.After(patience):
		t.Fatal("no response")
	}
	z.eventually("the proxy to be settled again", func() bool { return !behind() })
}

// envoyOf is the node of an Envoy, which takes filters by ECDS on this kind of stream too.
func envoyOf(name string) *corev3.Node {
	n := nodeOf(name, "")
	n.UserAgentName = "envoy"
	return n
}

// Clients other than Envoy ask for listeners only: their filters are inline, and a change of policy is a new listener.
func TestSotWFiltersInline(t *testing.T) {
	t.Parallel()
	for name, port := range map[string]string{"http": httpInbound,
		"tcp": `{"name": "main", "port": 8080, "servicePort": 9080, "protocol": "tcp"}`} {
		t.Run(name, func(t *testing.T) {
			z := newZoneServer(t)
			z.trust()
			z.dataplane("backend", port)
			z.permission("ours", "backend", "spiffe://td/first")
			c := z.sotw()
			c.request(nodeOf("backend", ""), lds, "")
			first := c.next(lds, "")
			if len(first.Resources) != 1 || !strings.Contains(string(first.Resources[0].Value), "spiffe://td/first") {
				t.Fatal("the listener does not carry its policy")
			}
			z.permission("ours", "backend", "spiffe://td/second")
			second := c.next(lds, "")
			if !strings.Contains(string(second.Resources[0].Value), "spiffe://td/second") ||
				second.VersionInfo == first.VersionInfo {
				t.Error("the change is not in the listener")
			}
			z.permission("other", "frontend", "spiffe://td/other")
			c.nothing()
			listener := &listenerv3.Listener{}
			must(t, second.Resources[0].UnmarshalTo(listener))
			must(t, listener.ValidateAll())
			if discovers(listener) {
				t.Error("a filter is still to be discovered")
			}
		})
	}
}

// discovers reports whether a network filter of a listener comes by ECDS.
func discovers(l *listenerv3.Listener) bool {
	return slices.ContainsFunc(l.GetFilterChains()[0].GetFilters(),
		func(f *listenerv3.Filter) bool { return f.GetConfigDiscovery() != nil })
}

func TestSotWStreamIsForOneProxy(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.sotw()
	c.request(nodeOf("backend", ""), cds, "")
	c.next(cds, "")
	c.request(nodeOf("frontend", ""), sds, "", "identity_cert:default/frontend")
	select {
	case err := <-c.err:
		if status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
	case r := <-c.responses:
		t.Errorf("got %v", r)
	case <-time.After(patience):
		t.Error("the stream goes on")
	}
}
