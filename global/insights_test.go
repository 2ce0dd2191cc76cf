package global

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// TestAcknowledgementsDoNotWaitForStatus checks that status is encoded and stored without the lock that each
// acknowledgement takes: one that comes meanwhile is counted before the encoding is done.
func TestAcknowledgementsDoNotWaitForStatus(t *testing.T) {
	t.Parallel()
	var i *insights
	session := uint64(0)
	acknowledge := func(during string) {
		if !i.mu.TryLock() {
			t.Errorf("acknowledgements wait while status is %s", during)
			return
		}
		i.mu.Unlock()
		i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-1", Session: 1, Time: time.Now(),
			Direction: exchange.GlobalToZone, Type: resources.TypeMesh})
	}
	encoded, stored := 0, 0
	i = newInsights(&meanwhileStore{Store: store.NewMemory(), then: func() { stored++; acknowledge("stored") }}, "instance", nil,
		slog.New(slog.DiscardHandler))
	encode := i.encode
	i.encode = func(typ resources.Type, m proto.Message) (*resources.Spec, error) {
		encoded++
		acknowledge("encoded")
		return encode(typ, m)
	}
	for _, zone := range []string{"zone-1", "zone-2"} {
		session++
		i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: zone, Session: session, Time: time.Now()})
	}
	i.flush(t.Context())
	if encoded != 2 || stored != 1 {
		t.Fatalf("%d insights were encoded, and %d batches stored", encoded, stored)
	}
	i.flush(t.Context())
	insight, err := resources.SpecAs[systempb.ZoneInsight](i.status.Snapshot().Get(insightKey("zone-1")))
	if err != nil || insight.GetSubscriptions()[0].GetStatus().GetTotal().GetResponsesAcknowledged() != 3 {
		t.Errorf("got %v, %v; want 3 acknowledged", insight, err)
	}
}

// meanwhileStore calls then in the middle of each batch.
type meanwhileStore struct {
	store.Store
	then func()
}

func (s *meanwhileStore) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	s.then()
	return s.Store.Apply(ctx, b)
}

// TestStatusIsWrittenUnread checks the cost of a zone's status: each connected zone's is written every second and
// rarely read.
func TestStatusIsWrittenUnread(t *testing.T) {
	status := store.NewMemory()
	i := newInsights(status, "instance", nil, slog.New(slog.DiscardHandler))
	i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-1", Session: 1, Time: time.Now()})
	sent := uint64(0)
	allocs := testing.AllocsPerRun(100, func() {
		sent++
		for _, typ := range []resources.Type{resources.TypeMesh, resources.TypeMeshTrust, resources.TypeMeshTimeout} {
			i.Observe(kds.Event{Kind: kds.Sent, Zone: "zone-1", Session: 1, Time: time.Now(), Type: typ})
		}
		i.flush(t.Context())
	})
	if allocs > 115 { // 277 if encoded each time
		t.Errorf("the status of one zone costs %v allocations", allocs)
	}
	insight, err := resources.SpecAs[systempb.ZoneInsight](status.Snapshot().Get(insightKey("zone-1")))
	if err != nil || insight.GetSubscriptions()[0].GetStatus().GetTotal().GetResponsesSent() != 3*sent {
		t.Errorf("got %v, %v; want %d sent", insight, err, 3*sent)
	}
}

// TestASessionEndsElsewhere: a zone that connects here has left the others, and the status that is replaced stays as it was:
// others read it.
func TestASessionEndsElsewhere(t *testing.T) {
	t.Parallel()
	status, begun := store.NewMemory(), time.Unix(1000, 0)
	quiet := slog.New(slog.DiscardHandler)
	there, here := newInsights(status, "there", nil, quiet), newInsights(status, "here", nil, quiet)
	there.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-1", Session: 1, Time: begun})
	there.flush(t.Context())
	shown := status.Snapshot().Get(insightKey("zone-1"))
	before, err := resources.SpecAs[systempb.ZoneInsight](shown)
	if err != nil || len(before.GetSubscriptions()) != 1 {
		t.Fatal(before, err)
	}
	copied := proto.Clone(before)
	here.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-1", Session: 1, Time: begun.Add(time.Minute)})
	here.flush(t.Context())
	after, err := resources.SpecAs[systempb.ZoneInsight](status.Snapshot().Get(insightKey("zone-1")))
	if err != nil || len(after.GetSubscriptions()) != 2 ||
		!after.GetSubscriptions()[0].GetDisconnectTime().AsTime().Equal(begun.Add(time.Minute)) || after.GetSubscriptions()[1].GetDisconnectTime() != nil {
		t.Errorf("it is %v, %v", after, err)
	}
	ended, err := endedInsight(shown, begun.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	last, err := resources.SpecAs[systempb.ZoneInsight](ended)
	if err != nil || !last.GetSubscriptions()[0].GetDisconnectTime().AsTime().Equal(begun.Add(time.Hour)) {
		t.Errorf("it ended as %v, %v", last, err)
	}
	if !proto.Equal(before, copied) {
		t.Errorf("the status that was replaced is now %v, was %v", before, copied)
	}
}

// TestStatusTakesItsShare checks how often counters are written: once a second where that costs little, and a twentieth of
// the time where it takes long, but every ten seconds in any case. That a zone connects or disconnects is written at once,
// and without the others.
func TestStatusTakesItsShare(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]int{0: 120, 200 * time.Millisecond: 28, 2 * time.Second: 10} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowStore{Store: store.NewMemory(), takes: takes}
			i := newInsights(s, "instance", nil, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- i.run(ctx) }()
			session := uint64(0)
			connect := func(zone string) {
				session++
				i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: zone, Session: session, Time: time.Now()})
			}
			connect("zone-1")
			time.Sleep(time.Minute)
			if n := s.batches(); len(n) != 1 {
				t.Errorf("%d writes while nothing happened", len(n)-1)
			}
			for range 12_000 {
				i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-1", Session: 1, Time: time.Now(),
					Direction: exchange.GlobalToZone, Type: resources.TypeMesh})
				time.Sleep(10 * time.Millisecond)
			}
			if n := s.batches(); len(n) < want-1 || len(n) > want+1 {
				t.Errorf("a write takes %s: there are %d in two minutes, want %d", takes, len(n), want)
			}
			time.Sleep(longestInsightPause + takes)
			s.batches()
			for range 3 { // the last while counters wait
				i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-1", Session: 1, Time: time.Now(),
					Direction: exchange.GlobalToZone, Type: resources.TypeMesh})
				time.Sleep(takes + time.Millisecond)
			}
			s.batches()
			connect("zone-2")
			time.Sleep(takes + time.Millisecond)
			if n := s.batches(); len(n) != 1 || n[0] != 1 {
				t.Errorf("a write takes %s: when a zone connects, so many zones are written: %v", takes, n)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTakeoverIsWrittenAtOnce checks that a zone that comes from another replica is shown as soon as this one has claimed it,
// also while counters wait: its session begins before that.
func TestTakeoverIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Store: store.NewMemory(), takes: time.Second}
		var claimed atomic.Bool
		has := func(zone string) bool { return zone == "zone-1" || claimed.Load() }
		i := newInsights(s, "instance", has, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.run(ctx) }()
		i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-1", Session: 1, Time: time.Now()})
		time.Sleep(2 * time.Second)
		i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-1", Session: 1, Time: time.Now(),
			Direction: exchange.GlobalToZone, Type: resources.TypeMesh})
		time.Sleep(2 * time.Second) // it is written, and counters wait
		i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-2", Session: 2, Time: time.Now()})
		time.Sleep(time.Millisecond)
		claimed.Store(true)
		i.Observe(kds.Event{Kind: kds.StreamOpened, Zone: "zone-2", Session: 2, Time: time.Now(), Peer: &kds.Peer{}})
		time.Sleep(1100 * time.Millisecond)
		if s.Snapshot().Get(insightKey("zone-2")) == nil {
			t.Error("it is not shown")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// slowStore takes a time for each batch, and remembers how many zones were in it.
type slowStore struct {
	store.Store
	takes time.Duration

	mu    sync.Mutex
	sizes []int // guarded by mu
}

func (s *slowStore) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(b.Ops))
	return s.Store.Apply(ctx, b)
}

// batches returns the sizes of the batches since the last call.
func (s *slowStore) batches() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := s.sizes
	s.sizes = nil
	return sizes
}

// TestInsightsTellWhatIsRefused: the insight of a zone changes when this server refuses something of the zone or cannot send
// it something, when it refuses something else, and when it refuses nothing any more: nothing else wakes who waits for that.
func TestInsightsTellWhatIsRefused(t *testing.T) {
	t.Parallel()
	status, refused := store.NewMemory(), ""
	i := newInsights(status, "instance", nil, slog.New(slog.DiscardHandler))
	i.refused = func(string) string { return refused }
	event := func(kind kds.EventKind, refusals ...tracker.Refusal) {
		i.Observe(kds.Event{Kind: kind, Zone: "zone-1", Session: 1, Time: time.Now(), Direction: exchange.ZoneToGlobal,
			Type: resources.TypeMeshService, Refusals: refusals})
		i.flush(t.Context())
	}
	event(kds.SessionStarted)
	for _, step := range []struct {
		what, refused string
		kind          kds.EventKind
		refusals      []tracker.Refusal
	}{
		{"refused", "1-a", kds.Received, []tracker.Refusal{{Name: "a"}}},
		{"something else", "1-b", kds.Received, []tracker.Refusal{{Name: "b"}}},
		{"taken", "", kds.Received, nil},
		{"cannot be sent", "1-c", kds.Withheld, []tracker.Refusal{{Name: "c"}}},
		{"taken again", "", kds.Received, nil},
	} {
		refused = step.refused
		event(step.kind, step.refusals...)
		if got := status.Snapshot().Get(insightKey("zone-1")).Labels[resources.LabelRefused]; got != refused {
			t.Errorf("%s: the insight tells %q, want %q", step.what, got, refused)
		}
	}
	before := status.Snapshot().Revision()
	if event(kds.Received); status.Snapshot().Revision() != before {
		t.Error("what the zone sends writes its insight although nothing is refused")
	}
}

// BenchmarkAcknowledgedWhileStatusIsWritten measures the longest wait of an acknowledgement of one zone while the
// status of 1,000 zones is written: worst-ms.
func BenchmarkAcknowledgedWhileStatusIsWritten(b *testing.B) {
	i := newInsights(store.NewMemory(), "instance", nil, slog.New(slog.DiscardHandler))
	var worst time.Duration
	touch := func(kind kds.EventKind) {
		for n := range 1000 {
			i.Observe(kds.Event{Kind: kind, Zone: fmt.Sprint("zone-", n), Session: uint64(n + 1), Time: time.Now(),
				Type: resources.TypeMeshTimeout})
		}
	}
	touch(kds.SessionStarted)
	for b.Loop() {
		touch(kds.Acknowledged)
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.flush(b.Context())
		}()
		for flushing := true; flushing; {
			began := time.Now()
			i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-0", Session: 1, Time: began,
				Type: resources.TypeMeshTimeout})
			worst = max(worst, time.Since(began))
			select {
			case <-done:
				flushing = false
			default:
			}
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
