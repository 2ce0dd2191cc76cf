package kds

import (
	"context"
	"fmt"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

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
func benchSenders(b *testing.B, s store.Store) ([]*sender, []*lastResponse) {
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
func benchSubscribe(b *testing.B, s *sender, stream *lastResponse) {
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
