package kds

import (
	"context"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// plainFeatures are those of a peer without any of Causeway's features.
const plainFeatures = exchange.FeatureZoneToken | exchange.FeatureHashSuffix | exchange.FeatureProducerPolicies | exchange.FeatureOptionalTargetRef

// peer speaks the wire protocol as a Kuma zone does, message by message.
type peer struct {
	t    *testing.T
	name string
	conn *grpc.ClientConn
	ctx  context.Context
	down globalToZoneClient
	up   zoneToGlobalClient
	self Peer
}

func dialPeer(t *testing.T, name, target string, features exchange.Features) *peer {
	t.Helper()
	// Fixed windows: unread data soon exceeds them.
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(128<<10))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	md := []string{metadataClientID, name, "features", "zone-ping-health"}
	for _, f := range features.Names() {
		md = append(md, "features", f)
	}
	return &peer{t: t, name: name, conn: conn, ctx: metadata.AppendToOutgoingContext(ctx, md...),
		self: Peer{Instance: name, Features: features}}
}

func (p *peer) openDown(types ...resources.Type) {
	p.t.Helper()
	var err error
	if p.down, err = kdspb.NewKDSSyncServiceClient(p.conn).GlobalToZoneSync(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	for _, t := range types {
		p.subscribe(t, nil)
	}
}

func (p *peer) subscribe(t resources.Type, have map[string]string) {
	p.t.Helper()
	p.request(&discovery.DeltaDiscoveryRequest{Node: nodeOf(p.name, p.self), TypeUrl: string(t),
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: have})
}

func (p *peer) request(r *discovery.DeltaDiscoveryRequest) {
	p.t.Helper()
	if err := p.down.Send(r); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) receive() *discovery.DeltaDiscoveryResponse {
	p.t.Helper()
	m, err := openedFrames(p.down.Recv)()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// openedFrames returns receive as a peer that takes frames reads it.
func openedFrames(receive func() (*discovery.DeltaDiscoveryResponse, error)) func() (*discovery.DeltaDiscoveryResponse,
	error) {
	return func() (*discovery.DeltaDiscoveryResponse, error) {
		m, err := receive()
		if err == nil {
			err = openFrame(m, true)
		}
		return m, err
	}
}

func (p *peer) ack(m *discovery.DeltaDiscoveryResponse) {
	p.t.Helper()
	p.request(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: p.name}, TypeUrl: m.GetTypeUrl(),
		ResponseNonce: m.GetNonce()})
}

func (p *peer) nack(m *discovery.DeltaDiscoveryResponse, text string) {
	p.t.Helper()
	p.request(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: p.name}, TypeUrl: m.GetTypeUrl(),
		ResponseNonce: m.GetNonce(), ErrorDetail: &status.Status{Message: text}, ResourceNamesSubscribe: []string{"*"}})
}

// openUp opens the other stream and reads the global's requests for all types.
func (p *peer) openUp() {
	p.t.Helper()
	var err error
	if p.up, err = kdspb.NewKDSSyncServiceClient(p.conn).ZoneToGlobalSync(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	for _, d := range resources.Descriptors() {
		if exchange.ZoneToGlobal.Carries(d) {
			if _, err := p.up.Recv(); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// send sends a response to the global and returns its answer.
func (p *peer) send(t resources.Type, nonce string, removed []string,
	items ...*discovery.Resource) *discovery.DeltaDiscoveryRequest {
	p.t.Helper()
	if err := p.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: string(t), Nonce: nonce, Resources: items,
		RemovedResources: removed}); err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.up.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.GetResponseNonce() != nonce || answer.GetTypeUrl() != string(t) {
		p.t.Fatalf("answer to nonce %q of %q", answer.GetResponseNonce(), answer.GetTypeUrl())
	}
	return answer
}

// wireOf returns r as the zone sends it.
func wireOf(t testing.TB, zone string, r *resources.Resource) *discovery.Resource {
	t.Helper()
	out, err := exchange.NewMapping().Outbound(r, &exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: zone,
		Features: exchange.OwnFeatures()})
	if err != nil {
		t.Fatal(err)
	}
	wire, err := Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func envelope(t *testing.T, r *discovery.Resource) *meshpb.KumaResource {
	t.Helper()
	var e meshpb.KumaResource
	if err := proto.Unmarshal(r.GetResource().GetValue(), &e); err != nil {
		t.Fatal(err)
	}
	return &e
}
