package kds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources/store"
)

// promptSender returns a sender whose zone has its first list, and that no goroutine runs.
func promptSender(t *testing.T, s store.Store) (*sender, *recordingStream) {
	t.Helper()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	out := newSender(senderConfig{
		direction: exchange.GlobalToZone, zone: "zone-1", identifier: "global", store: s, pace: unpaced{s},
		filter: exchange.NewFilter(), encoder: newEncoder(exchange.NewMapping(), nil),
		refusals: tracker.NewRefusals(time.Now, nil), maxMessage: MaxMessageSize, maxWhole: MaxMessageSize, sendTimeout: time.Second,
		answerTimeout: time.Minute,
		now:           time.Now, session: newSession(context.Background(), 1, "zone-1", silent{}, time.Now), log: testLog(),
		inspect: checkInvariants(t),
	})
	stream := &recordingStream{}
	out.stream = stream
	first := &discovery.DeltaDiscoveryRequest{TypeUrl: "MeshTrafficPermission",
		Node: nodeOf("zone-1", Peer{Features: exchange.OwnFeatures() &^ exchange.FeatureFrames}), ResourceNamesSubscribe: []string{"*"}}
	if out.tryAnswer(first) {
		t.Fatal("a subscription was taken")
	}
	if err := out.handle(first); err != nil {
		t.Fatal(err)
	}
	steps(t, out)
	if !out.tryAnswer(answerTo(stream)) {
		t.Fatal("the answer to the list was not taken")
	}
	if nudges(out) != 1 {
		t.Fatal("the stream's goroutine is not told that its slot is free again")
	}
	out.slot.release() // as run does
	return out, stream
}

// steps does once what run does between two waits.
func steps(t *testing.T, s *sender) {
	t.Helper()
	s.mu.Lock()
	defer s.unlock()
	if _, _, err := s.step(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func answerTo(stream *recordingStream) *discovery.DeltaDiscoveryRequest {
	last := stream.sent[len(stream.sent)-1]
	return &discovery.DeltaDiscoveryRequest{TypeUrl: last.GetTypeUrl(), ResponseNonce: last.GetNonce()}
}

func nudges(s *sender) int {
	select {
	case <-s.nudged:
		return 1
	default:
		return 0
	}
}

// TestSmallChangesWakeNobody checks that a flush sends, and that an answer is handled and releases what waited for it,
// all without the stream's goroutine.
func TestSmallChangesWakeNobody(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	change := func(name string) {
		key, spec := permission(name)
		put(t, s, written(t, globalHome, key, spec))
		sender.notify()
	}
	change("a")
	if len(stream.sent) != 2 || len(stream.sent[1].GetResources()) != 1 {
		t.Fatalf("sent %v", stream.sent)
	}
	change("b") // waits for the answer
	if len(stream.sent) != 2 {
		t.Fatal("a second message went out before the first was answered")
	}
	if !sender.tryAnswer(answerTo(stream)) || len(stream.sent) != 3 {
		t.Fatalf("the answer brought out %d messages", len(stream.sent)-2)
	}
	if !sender.tryAnswer(answerTo(stream)) || nudges(sender) != 0 || !sender.flushed {
		t.Errorf("settled %v, or the stream's goroutine was woken", sender.flushed)
	}
}

// TestNothingIsKeptOfAnAnswer checks that a stream keeps nothing of the answer before while it waits for the next: the zone
// decides how much that is, and how long it waits.
func TestNothingIsKeptOfAnAnswer(t *testing.T) {
	t.Parallel()
	sender, stream := promptSender(t, store.NewMemory())
	answer := answerTo(stream)
	answer.ErrorDetail = &status.Status{Message: strings.Repeat("no\n", 1<<20)}
	answer.InitialResourceVersions = map[string]string{"a.default": "b"}
	codec, waits := newCodec(), errors.New("no more arrives")
	arrived := 0
	_, err := sender.forRun(func(into any) error {
		arrived++
		if kept := proto.Size(&into.(*arrival).request); kept > 0 {
			t.Errorf("%d bytes of the last answer are kept", kept)
		}
		if arrived == 2 {
			return waits
		}
		data, err := codec.Marshal(answer)
		if err != nil {
			return err
		}
		return codec.Unmarshal(data, into)
	})()
	if !errors.Is(err, waits) || arrived != 2 {
		t.Errorf("%d messages arrived: %v", arrived, err)
	}
}

// TestWhatMayHaveToWaitIsLeft checks that a large message is left to the stream's goroutine, which sends it once.
func TestWhatMayHaveToWaitIsLeft(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	for i := range 40 {
		key, spec := permission(fmt.Sprint("p", i))
		put(t, s, written(t, globalHome, key,
			strings.Replace(spec, "spiffe://d/", "spiffe://d/"+strings.Repeat("y", 1000), 1)))
	}
	sender.notify()
	if len(stream.sent) != 1 || sender.outbox.unsent == nil || nudges(sender) != 1 {
		t.Fatalf("%d messages were sent without the goroutine", len(stream.sent)-1)
	}
	sender.notify()
	if len(stream.sent) != 1 {
		t.Fatal("the message was sent by a flush after all")
	}
	steps(t, sender)
	steps(t, sender)
	if len(stream.sent) != 2 || len(stream.sent[1].GetResources()) != 40 {
		t.Fatalf("the goroutine sent %d messages", len(stream.sent)-1)
	}
}

// TestWhoIsAtWorkIsNudged checks that news while the stream's goroutine is at work, or before and after it, is neither
// waited for nor lost.
func TestWhoIsAtWorkIsNudged(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	sender.mu.Lock()
	sender.notify()
	taken := sender.tryAnswer(answerTo(stream))
	sender.mu.Unlock()
	if taken || nudges(sender) != 1 {
		t.Errorf("taken %v, or not nudged", taken)
	}
	sender.stream = nil
	if sender.notify(); sender.tryAnswer(answerTo(stream)) || nudges(sender) != 1 {
		t.Error("work was done for a stream that is over")
	}
}

// TestFailureEndsTheStream checks that an error in a flush ends run.
func TestFailureEndsTheStream(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{"enabled":false}`))
	sender.notify()
	if !errors.Is(sender.failed, ErrZoneDisabled) || nudges(sender) != 1 {
		t.Fatalf("the flush found %v", sender.failed)
	}
	if err := sender.run(t.Context(), stream, nil); !errors.Is(err, ErrZoneDisabled) {
		t.Errorf("run ended with %v", err)
	}
}

// TestAnswerToWhatWasNotSent checks that a peer that answers a message before it is sent ends nothing, and gets the
// message.
func TestAnswerToWhatWasNotSent(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	key, spec := permission("large")
	put(t, s, written(t, globalHome, key,
		strings.Replace(spec, "spiffe://d/", "spiffe://d/"+strings.Repeat("y", promptBytes), 1)))
	sender.notify()
	if sender.outbox.unsent == nil {
		t.Fatal("a large message was sent by a flush")
	}
	if !sender.tryAnswer(&discovery.DeltaDiscoveryRequest{TypeUrl: string(key.Type),
		ResponseNonce: sender.outbox.unsent.message.nonce}) {
		t.Fatal("the answer was not taken")
	}
	steps(t, sender)
	if len(stream.sent) != 2 || sender.types[key.Type].inflight == nil {
		t.Errorf("%d messages were sent, in flight is %v", len(stream.sent)-1, sender.types[key.Type].inflight)
	}
}

// TestNoncesCannotBeGuessed checks that nonces are random: an answer must prove that the peer has read, or gRPC would
// block a send that must not block.
func TestNoncesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		_, stream := promptSender(t, store.NewMemory())
		nonce := stream.sent[0].GetNonce()
		if seen[nonce] || len(nonce) < nonceLength {
			t.Errorf("nonce %q is that of another stream, or short", nonce)
		}
		seen[nonce] = true
	}
}

// TestFlushesTakeNoSlot checks that a list that a flush finds due is made by the stream's goroutine, in a slot that it
// gives up again.
func TestFlushesTakeNoSlot(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]int{"a list that was too big before": 1, "past the window": 5} {
		t.Run(name, func(t *testing.T) {
			s := store.NewMemoryWith(store.ViewConfig{WindowCommits: 2})
			sender, stream := promptSender(t, s)
			sender.types["MeshTrafficPermission"].full = writes == 1
			for i := range writes {
				key, spec := permission(fmt.Sprint("p", i))
				put(t, s, written(t, globalHome, key, spec))
			}
			sender.notify()
			if sender.slot.ready != nil || len(stream.sent) != 1 || nudges(sender) != 1 {
				t.Fatalf("the flush made the list, or asked for a slot, or nobody hears of it: %d messages", len(stream.sent)-1)
			}
			steps(t, sender)
			if !sender.slot.got || len(stream.sent) != 2 || len(stream.sent[1].GetResources()) != writes {
				t.Errorf("the list is not sent in a slot: %d messages", len(stream.sent)-1)
			}
		})
	}
}

// still is a pace without flushes.
type still struct{}

func (still) next() (uint64, <-chan struct{}) { return 1, nil }

func (still) flushed(watcher, uint64) {}

// TestDisabledBetweenWaves checks that an answer releases nothing more once the zone is disabled, even before a flush
// reports that.
func TestDisabledBetweenWaves(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	for _, name := range []string{"a", "b"} {
		key, spec := permission(name)
		put(t, s, written(t, globalHome, key, spec))
		sender.notify()
	}
	sender.pace, sender.feed.at.flush = still{}, 1
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{"enabled":false}`))
	key, spec := permission("later")
	put(t, s, written(t, globalHome, key, spec))
	if !sender.tryAnswer(answerTo(stream)) || len(stream.sent) != 2 {
		t.Errorf("a disabled zone was sent %v", stream.sent[2:])
	}
	if !errors.Is(sender.failed, ErrZoneDisabled) {
		t.Errorf("the stream goes on: %v", sender.failed)
	}
}
