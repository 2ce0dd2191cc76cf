package kds

import (
	"context"
	"fmt"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// lastResponse is a stream that keeps the last response, without encoding it.
type lastResponse struct{ last *response }

func (l *lastResponse) SendMsg(m any) error {
	l.last = m.(*response)
	return nil
}

func (*lastResponse) Recv() (*discovery.DeltaDiscoveryRequest, error) { return nil, context.Canceled }

func (l *lastResponse) answer() *discovery.DeltaDiscoveryRequest {
	return &discovery.DeltaDiscoveryRequest{TypeUrl: l.last.typeURL, ResponseNonce: l.last.nonce}
}

// benchZones is the number of streams that share an encoder.
const benchZones = 100

// benchSenders returns senders whose zones have their first lists of all types.
func benchSenders(b testing.TB, s store.Store) ([]*sender, []*lastResponse) {
	b.Helper()
	encoder, filter := newEncoder(exchange.NewMapping(), nil), exchange.NewFilter()
	senders, streams := make([]*sender, benchZones), make([]*lastResponse, benchZones)
	for i := range senders {
		zone := fmt.Sprintf("zone-%d", i)
		put(b, s, written(b, globalHome, ZoneKey(zone), `{}`))
		senders[i] = newSender(senderConfig{
			direction: exchange.GlobalToZone, zone: zone, identifier: "global", store: s, pace: unpaced{s},
			filter: filter, encoder: encoder, refusals: tracker.NewRefusals(time.Now, nil),
			maxMessage: DefaultMaxMessageSize, maxWhole: MaxMessageSize, sendTimeout: time.Second, answerTimeout: time.Minute,
			now: time.Now, session: newSession(context.Background(), 1, zone, silent{}, time.Now), log: testLog(),
		})
		streams[i] = &lastResponse{}
		senders[i].stream = streams[i]
	}
	for i, one := range senders {
		benchSubscribe(b, one, streams[i])
	}
	return senders, streams
}

// benchSubscribe subscribes to all types, and answers each list.
func benchSubscribe(b testing.TB, s *sender, stream *lastResponse) {
	b.Helper()
	for _, d := range resources.Descriptors() {
		if !exchange.GlobalToZone.Carries(d) {
			continue
		}
		if err := s.handle(&discovery.DeltaDiscoveryRequest{TypeUrl: string(d.Type),
			Node: nodeOf(s.zone, Peer{Features: exchange.OwnFeatures()}), ResourceNamesSubscribe: []string{"*"}}); err != nil {
			b.Fatal(err)
		}
		s.mu.Lock()
		_, _, err := s.step(context.Background(), true)
		s.mu.Unlock()
		if err != nil {
			b.Fatal(err)
		}
		if !s.tryAnswer(stream.answer()) {
			b.Fatal("the answer was not taken")
		}
	}
	s.slot.release()
}

// BenchmarkChange measures a change of one permission, from its commit to the answers of all zones.
func BenchmarkChange(b *testing.B) {
	s := store.NewMemory()
	senders, streams := benchSenders(b, s)
	key, spec := permission("p")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		put(b, s, written(b, globalHome, key, spec, "round", fmt.Sprint(i)))
		for j, one := range senders {
			one.notify()
			if !one.tryAnswer(streams[j].answer()) {
				b.Fatal("the answer was not taken")
			}
		}
	}
}

// TestAllocationsOfAChange counts what a change of one policy allocates for each zone that gets it, from the flush to the
// acknowledgement, beside gRPC: the message, its nonce, its version, what is in flight, its encoding, the text of the
// acknowledgement, and a copy of the list of commits.
func TestAllocationsOfAChange(t *testing.T) {
	s := store.NewMemory()
	senders, streams := benchSenders(t, s)
	key, spec := permission("p")
	round, ack, into, codec := 0, []byte(nil), new(arrival), newCodec()
	write := func() {
		round++
		put(t, s, written(t, globalHome, key, spec, "round", fmt.Sprint(round)))
	}
	alone := testing.AllocsPerRun(50, write)
	all := testing.AllocsPerRun(50, func() {
		write()
		for i, one := range senders {
			one.notify()
			if _, err := codec.Marshal(streams[i].last); err != nil {
				t.Fatal(err)
			}
			ack = appendACK(ack[:0], one.zone, streams[i].last)
			if !decodeAnswer(ack, into) || !one.tryAnswer(&into.request) {
				t.Fatal("the answer was not taken")
			}
		}
	})
	const each, shared = 7, 110 // shared by all zones: the policy, once in their form
	if n := all - alone; n > each*benchZones+shared || n < each*benchZones {
		t.Errorf("a change allocates %v times for %d zones, want %d for each", n, benchZones, each)
	}
}

// appendACK appends the ACK of a message as zones send it.
func appendACK(b []byte, zone string, m *response) []byte {
	b = protowire.AppendTag(b, requestNode, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(nodeID)+protowire.SizeBytes(len(zone))))
	b = protowire.AppendString(protowire.AppendTag(b, nodeID, protowire.BytesType), zone)
	b = protowire.AppendString(protowire.AppendTag(b, requestTypeURL, protowire.BytesType), m.typeURL)
	return protowire.AppendString(protowire.AppendTag(b, requestNonce, protowire.BytesType), m.nonce)
}

// BenchmarkList measures the lists of all types to all zones, with 1,000 permissions.
func BenchmarkList(b *testing.B) {
	s := store.NewMemory()
	for i := range 1000 {
		key, spec := permission(fmt.Sprintf("p%d", i))
		put(b, s, written(b, globalHome, key, spec))
	}
	b.ReportAllocs()
	for b.Loop() {
		benchSenders(b, s)
	}
}
