package global

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// TestAcknowledgementsDoNotWaitForStatus checks that status is encoded without the lock that each acknowledgement
// takes, so that none waits for the encoding.
func TestAcknowledgementsDoNotWaitForStatus(t *testing.T) {
	t.Parallel()
	i := newInsights(store.NewMemory(), "instance", nil, slog.New(slog.DiscardHandler))
	i.Observe(kds.Event{Kind: kds.SessionStarted, Zone: "zone-1", Session: 1, Time: time.Now()})
	touch := func(types int) {
		for n := range types {
			i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-1", Session: 1, Time: time.Now(),
				Type: resources.Type(fmt.Sprint("Type", n))})
		}
	}
	touch(3000)
	insight, encoding := i.taken("zone-1"), time.Hour
	for range 10 {
		began := time.Now()
		if _, err := resources.NewSpecOf(resources.TypeZoneInsight, insight); err != nil {
			t.Fatal(err)
		}
		encoding = min(encoding, time.Since(began))
	}
	held := time.Hour
	for range 100 { // another process may interfere
		touch(1)
		if held = min(held, longestHold(t, i)); held <= encoding/2 {
			return
		}
	}
	t.Errorf("the lock is held for %s, and encoding takes %s", held, encoding)
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

// longestHold returns the longest time for which a flush holds the lock.
func longestHold(t *testing.T, i *insights) (longest time.Duration) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.flush(t.Context())
	}()
	for since := time.Now(); ; {
		if i.mu.TryLock() {
			i.mu.Unlock()
			since = time.Now()
		}
		longest = max(longest, time.Since(since))
		select {
		case <-done:
			return longest
		default:
		}
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
