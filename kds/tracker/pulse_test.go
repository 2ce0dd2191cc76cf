package tracker

import (
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestPulseBeatsWithEachChange checks that whoever waits for the sync with a peer is woken by everything that its status shows.
func TestPulseBeatsWithEachChange(t *testing.T) {
	t.Parallel()
	now := time.Now()
	key := resources.Key{Type: "MeshTimeout", Mesh: "default", Name: "t"}
	one := Refusal{Direction: exchange.GlobalToZone, Type: key.Type, Name: "t.default", Version: "1", Reason: "r"}
	pulse := &Pulse{}
	l, f, over := NewLedger(time.Now, pulse), NewRefusals(time.Now, pulse), NewOver(time.Now, pulse)
	line := l.Line(exchange.GlobalToZone, key.Type, true)
	next, end := pulse.Wait()
	defer end()
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"a session", func() { l.Session(true, now) }},
		{"a doubt", func() { l.Doubt(now, "why") }},
		{"another store", func() { l.Forget(now) }},
		{"a message", func() { line.Sent(7, now) }},
		{"an answer", func() { line.Answered(7, time.Time{}) }},
		{"nothing to send", func() { line.UpToDate(8) }},
		{"a store that cannot write", func() { line.Waits(9, now) }},
		{"a message of the peer", func() { line.Applied(9, false) }},
		{"held", func() { line.Hold(map[resources.Key]uint64{key: 1}, now) }},
		{"released", func() { line.Release(key) }},
		{"refused", func() { f.Settle(one, []string{one.Name}, []Refusal{one}) }},
		{"mended", func() { f.Settle(one, []string{one.Name}, nil) }},
		{"all refusals", func() { f.Replace([]Refusal{one}) }},
		{"pruned", func() { f.Prune(one, func(Refusal) bool { return false }) }},
		{"over a limit", func() { over.Meet(LimitRefusals, "", 1, 1) }},
		{"below it", func() { over.End(LimitRefusals, "") }},
		{"all limits", func() { over.Replace([]OverLimit{{Limit: LimitRefusals}}) }},
		{"another replica's state", func() {
			l.Replace(&ZoneState{Lines: []LineState{{Direction: exchange.GlobalToZone, Type: key.Type, Sending: true}}})
		}},
		{"a message after another replica's session", func() { l.Line(exchange.GlobalToZone, key.Type, true).Sent(10, now) }},
	} {
		woken := next()
		step.change()
		select {
		case <-woken:
		default:
			t.Errorf("%s wakes nobody", step.name)
		}
	}
}

// TestPulseMissesNothing checks that many who wait, come and go see the last of many changes.
func TestPulseMissesNothing(t *testing.T) {
	t.Parallel()
	const changes, waiters = 2000, 8
	pulse := &Pulse{}
	var mu sync.Mutex
	at := 0
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			for last := 0; last < changes; {
				next, end := pulse.Wait()
				for range 10 {
					woken := next()
					mu.Lock()
					now := at
					mu.Unlock()
					if last = now; last == changes {
						break
					}
					select {
					case <-woken:
					case <-time.After(20 * time.Second):
						t.Errorf("nothing wakes who has seen %d of %d changes", last, changes)
						last = changes
					}
				}
				end()
			}
		})
	}
	for i := range changes {
		mu.Lock()
		at = i + 1
		mu.Unlock()
		pulse.Beat()
	}
	all.Wait()
	if n := pulse.waiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// TestBeatsThatNobodyWaitsForAreFree checks that a beat allocates nothing, and that none is needed.
func TestBeatsThatNobodyWaitsForAreFree(t *testing.T) {
	pulse, none := &Pulse{}, (*Pulse)(nil)
	if n := testing.AllocsPerRun(100, func() { pulse.Beat(); none.Beat() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestMarkIsAnotherOnceTheStatusIs checks that time alone changes no revision, and that each field but the lag does.
func TestMarkIsAnotherOnceTheStatusIs(t *testing.T) {
	t.Parallel()
	base := func() SyncStatus {
		return SyncStatus{Zone: "z", Connected: true, Types: []TypeSync{{Type: "MeshTimeout", Sent: 7, LagSeconds: 1, Refused: []RefusedResource{}}}}
	}
	mark := func(s SyncStatus) string { s.Mark(); return s.Revision }
	was := mark(base())
	later := base()
	later.Types[0].LagSeconds, later.Revision = 2, "of before"
	if got := mark(later); got != was {
		t.Errorf("time alone changes the revision: %s, then %s", was, got)
	}
	if later.Types[0].LagSeconds != 2 {
		t.Error("the lag is not shown")
	}
	seen := map[string]bool{was: true}
	for name, change := range map[string]func(*SyncStatus){
		"connected": func(s *SyncStatus) { s.Connected = false }, "acked": func(s *SyncStatus) { s.Types[0].Acked++ },
		"refused":  func(s *SyncStatus) { s.Types[0].Refused = []RefusedResource{{Name: "n"}} },
		"a reason": func(s *SyncStatus) { s.Types[0].Refused = []RefusedResource{{Reason: "n"}} },
		"a side":   func(s *SyncStatus) { s.Types[0].Refused = []RefusedResource{{By: "peer"}} },
		"a time":   func(s *SyncStatus) { s.Types[0].Refused = []RefusedResource{{Since: time.Unix(1, 0)}} },
		"held":     func(s *SyncStatus) { s.Types[0].Held = &HeldDeletions{Count: 1} },
		"reported": func(s *SyncStatus) { s.Reported = time.Unix(1, 0) }, "over": func(s *SyncStatus) { s.Over = []OverLimit{{}} },
	} {
		s := base()
		change(&s)
		if seen[mark(s)] {
			t.Errorf("%s changes no revision", name)
		}
		seen[mark(s)] = true
	}
}

// TestOneStateHasOneRevision checks that what both sides refuse stands in one order, so that a status has one revision.
func TestOneStateHasOneRevision(t *testing.T) {
	t.Parallel()
	one := Refusal{Direction: exchange.GlobalToZone, Type: "MeshTimeout", Name: "t.default", Version: "1", Reason: "r"}
	other := one
	other.ByPeer = true
	f, l, s := NewRefusals(time.Now, nil), NewLedger(time.Now, nil), store.NewMemory()
	f.Replace([]Refusal{one, other})
	revisions := map[string]int{}
	for range 64 {
		status := l.Status("z", "", f, s)
		status.Mark()
		revisions[status.Revision]++
	}
	if len(revisions) != 1 {
		t.Errorf("one state has the revisions %v", revisions)
	}
}
