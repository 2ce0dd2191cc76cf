package kds

import (
	"context"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// evilZone is a zone that sends what a script tells it to.
type evilZone struct {
	t      *testing.T
	global *Global
	store  store.Store
	target string

	conn   *grpc.ClientConn
	ctx    context.Context
	cancel context.CancelFunc
	down   globalToZoneClient
	up     zoneToGlobalClient
	asked  *inbox[*discovery.DeltaDiscoveryRequest]
	sent   *inbox[*discovery.DeltaDiscoveryResponse]
	last   *discovery.DeltaDiscoveryResponse
}

func (z *evilZone) connect(features exchange.Features) {
	z.hangUp()
	var err error
	z.conn, err = grpc.NewClient(z.target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		z.t.Fatal(err)
	}
	ctx, cancel := withoutEnd()
	md := []string{metadataClientID, "evil"}
	for _, name := range features.Names() {
		md = append(md, metadataFeatures, name)
	}
	z.ctx, z.cancel = metadata.AppendToOutgoingContext(ctx, md...), cancel
}

func (z *evilZone) hangUp() {
	if z.conn == nil {
		return
	}
	z.cancel()
	_ = z.conn.Close()
	if z.sent != nil {
		<-z.sent.done
	}
	if z.asked != nil {
		<-z.asked.done
	}
	z.conn, z.down, z.up, z.sent, z.asked, z.last = nil, nil, nil, nil, nil, nil
}

func (z *evilZone) openDown() {
	if z.down != nil {
		return
	}
	var err error
	if z.down, err = kdspb.NewKDSSyncServiceClient(z.conn).GlobalToZoneSync(z.ctx); err != nil {
		z.down = nil
		return
	}
	z.sent = readInto(openedFrames(z.down.Recv))
}

func (z *evilZone) openUp() {
	if z.up != nil {
		return
	}
	var err error
	if z.up, err = kdspb.NewKDSSyncServiceClient(z.conn).ZoneToGlobalSync(z.ctx); err != nil {
		z.up = nil
		return
	}
	z.asked = readInto(z.up.Recv)
}

func (z *evilZone) request(r *discovery.DeltaDiscoveryRequest) {
	if z.down != nil && encodable(r) {
		_ = z.down.Send(r) // the script notices an ended stream
	}
}

// answer answers the next message, or the last one again.
func (z *evilZone) answer(text string, node byte) {
	if z.sent == nil {
		return
	}
	if m, ok := z.sent.take(patienceOfFuzz, func(*discovery.DeltaDiscoveryResponse) bool { return true }); ok {
		z.last = m
	}
	if z.last == nil {
		return
	}
	r := &discovery.DeltaDiscoveryRequest{TypeUrl: z.last.GetTypeUrl(), ResponseNonce: z.last.GetNonce(),
		Node: saidNode("evil", node)}
	if text != "" {
		r.ErrorDetail = &rpcstatus.Status{Message: text}
	}
	z.request(r)
}

// send sends a response to the global, and checks what the global acknowledges.
func (z *evilZone) send(m *discovery.DeltaDiscoveryResponse, wrote string) {
	if z.up == nil || !encodable(m) || z.up.Send(m) != nil {
		return
	}
	answer, ok := z.asked.take(200*time.Millisecond, func(r *discovery.DeltaDiscoveryRequest) bool {
		return r.GetResponseNonce() == m.GetNonce() && m.GetNonce() != ""
	})
	if ok && answer.GetErrorDetail() == nil && wrote != "" && find(z.store, resources.Type(m.GetTypeUrl()), wrote) == nil {
		z.t.Errorf("%s of %s was acknowledged and is not stored", wrote, m.GetTypeUrl())
	}
}

func (z *evilZone) play(op, a, b byte) {
	if z.conn == nil {
		z.connect(exchange.OwnFeatures())
	}
	switch op % 16 {
	case 0:
		z.openDown()
	case 1:
		z.openUp()
	case 2:
		z.request(&discovery.DeltaDiscoveryRequest{TypeUrl: pick(saidTypes, a), Node: saidNode("evil", b),
			ResourceNamesSubscribe: []string{"*"}})
	case 3:
		z.request(&discovery.DeltaDiscoveryRequest{TypeUrl: pick(saidTypes, a), Node: saidNode("evil", 4),
			InitialResourceVersions: saidHave(a, b)})
	case 4:
		z.answer("", a)
	case 5:
		z.answer(pick(saidTexts, a), b)
	case 6:
		z.request(&discovery.DeltaDiscoveryRequest{TypeUrl: pick(saidTypes, a), ResponseNonce: pick(saidTexts, b),
			ErrorDetail: &rpcstatus.Status{}})
	case 7:
		key, spec := permission("g" + string('a'+rune(a%4)))
		put(z.t, z.store, written(z.t, globalHome, key, spec))
	case 8:
		key, _ := permission("g" + string('a'+rune(a%4)))
		remove(z.t, z.store, key)
	case 9, 10:
		typ := pick(saidTypes, a)
		item, wrote := saidItem(z.t, exchange.ZoneToGlobal, "evil", typ, b)
		z.send(&discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: "n", Resources: []*discovery.Resource{item},
			SystemVersionInfo: pick(saidVersions, a/16)}, wrote)
	case 11:
		z.send(&discovery.DeltaDiscoveryResponse{TypeUrl: pick(saidTypes, a), Nonce: "n",
			RemovedResources: []string{pick(saidNames, b), "p.default"}, SystemVersionInfo: pick(saidVersions, a/16)}, "")
	case 12:
		z.hangUp()
		z.connect([]exchange.Features{exchange.OwnFeatures(), plainFeatures, 0}[int(a)%3])
	case 13:
		if z.down != nil {
			_ = z.down.CloseSend()
		}
	case 14:
		z.report(a, b)
	case 15:
		z.global.Recheck()
		_, _ = z.global.Resync(context.Background(), "evil")
	}
}

var saidJSON = []string{
	"", "null", "[]", "{", `{"applied":null,"behind":[{}]}`,
	`{"applied":{"Mesh":18446744073709551615,"\u0000":1},"held":{"Mesh":-1}}`,
	`{"behind":[{"mesh":"\u001b[2J"}],"newStore":{"since":"9999-12-31T23:59:59Z"}}`,
	`{"held":{"Mesh":9223372036854775807,"Zone":9223372036854775807}}`,
	`{"newStore":{"since":"0000-01-01T00:00:00Z","known":"a"}}`,
	`{"type":"MeshTrafficPermission","mesh":"default","name":"p"}`, `{"type":"Nobody"}`,
	strings.Repeat("[", 20_000), `{"applied":{"MeshTrafficPermission":1}}`,
}

func (z *evilZone) report(a, b byte) {
	ctx, cancel := context.WithTimeout(z.ctx, time.Second)
	defer cancel()
	in := wrapperspb.Bytes([]byte(pick(saidJSON, a)))
	if b%2 == 0 {
		_ = z.conn.Invoke(ctx, kdspb.ReportService_Report_FullMethodName, in, new(emptypb.Empty))
		return
	}
	_ = z.conn.Invoke(ctx, kdspb.ReportService_Reached_FullMethodName, in, new(wrapperspb.BytesValue))
}
