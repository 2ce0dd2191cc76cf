package kds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// promptSender is a sender whose zone has got its first list, and that nobody runs.
func promptSender(t *testing.T, s store.Store) (*sender, *recordingStream) {
	t.Helper()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	out := newSender(senderConfig{
		direction: GlobalToZone, zone: "zone-1", identifier: "global", store: s, pace: unpaced{s}, crossing: NewCrossing(), encoder: NewEncoder(NewMapping()),
		refusals: NewRefusals(), maxMessage: MaxMessageSize, maxWhole: MaxMessageSize, sendTimeout: time.Second, answerTimeout: time.Minute,
		now: time.Now, session: newSession(context.Background(), 1, "zone-1", silent{}), log: testLog(),
	})
	stream := &recordingStream{}
	out.stream = stream
	first := &discovery.DeltaDiscoveryRequest{TypeUrl: "MeshTrafficPermission", Node: nodeOf("zone-1", Peer{Features: OwnFeatures()}), ResourceNamesSubscribe: []string{"*"}}
	if out.take(first) {
		t.Fatal("a subscription was taken")
	}
	if err := out.handle(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	steps(t, out)
	if !out.take(answerTo(stream)) {
		t.Fatal("the answer to the list was not taken")
	}
	if nudges(out) != 1 {
		t.Fatal("the stream's goroutine is not told that its turn is over")
	}
	out.turn.end() // as run does
	return out, stream
}

// steps does once what run does between two waits.
func steps(t *testing.T, s *sender) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
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

// TestSmallChangesWakeNobody: a wave sends, an answer is taken and what waited for it goes out, all without the stream's goroutine.
func TestSmallChangesWakeNobody(t *testing.T) {
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	change := func(name string) {
		key, spec := permission(name)
		put(t, s, written(t, globalHome, key, spec))
		sender.hear()
	}
	change("a")
	if len(stream.sent) != 2 || len(stream.sent[1].GetResources()) != 1 {
		t.Fatalf("sent %v", stream.sent)
	}
	change("b") // waits for the answer
	if len(stream.sent) != 2 {
		t.Fatal("a second message went out before the first was answered")
	}
	if !sender.take(answerTo(stream)) || len(stream.sent) != 3 {
		t.Fatalf("the answer brought out %d messages", len(stream.sent)-2)
	}
	if !sender.take(answerTo(stream)) || nudges(sender) != 0 || !sender.settled {
		t.Errorf("settled %v, or the stream's goroutine was woken", sender.settled)
	}
}

// TestWhatMayHaveToWaitIsLeft: a large message is for the stream's goroutine, which sends it once.
func TestWhatMayHaveToWaitIsLeft(t *testing.T) {
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	for i := range 40 {
		key, spec := permission(fmt.Sprint("p", i))
		put(t, s, written(t, globalHome, key, strings.Replace(spec, "spiffe://d/", "spiffe://d/"+strings.Repeat("y", 1000), 1)))
	}
	sender.hear()
	if len(stream.sent) != 1 || sender.unsent == nil || nudges(sender) != 1 {
		t.Fatalf("%d messages were sent without the goroutine", len(stream.sent)-1)
	}
	sender.hear()
	if len(stream.sent) != 1 {
		t.Fatal("the message was sent by a wave after all")
	}
	steps(t, sender)
	steps(t, sender)
	if len(stream.sent) != 2 || len(stream.sent[1].GetResources()) != 40 {
		t.Fatalf("the goroutine sent %d messages", len(stream.sent)-1)
	}
}

// TestWhoIsAtWorkIsNudged: what comes while the stream's goroutine is at work, or before and after it, is not waited for and not lost.
func TestWhoIsAtWorkIsNudged(t *testing.T) {
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	sender.mu.Lock()
	sender.hear()
	taken := sender.take(answerTo(stream))
	sender.mu.Unlock()
	if taken || nudges(sender) != 1 {
		t.Errorf("taken %v, or not nudged", taken)
	}
	sender.stream = nil
	if sender.hear(); sender.take(answerTo(stream)) || nudges(sender) != 1 {
		t.Error("work was done for a stream that is over")
	}
}

// TestFailureEndsTheStream: what a wave finds ends run.
func TestFailureEndsTheStream(t *testing.T) {
	s := store.NewMemory()
	sender, stream := promptSender(t, s)
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{"enabled":false}`))
	sender.hear()
	if !errors.Is(sender.failed, ErrZoneDisabled) || nudges(sender) != 1 {
		t.Fatalf("the wave found %v", sender.failed)
	}
	if err := sender.run(t.Context(), stream, nil); !errors.Is(err, ErrZoneDisabled) {
		t.Errorf("run ended with %v", err)
	}
}
