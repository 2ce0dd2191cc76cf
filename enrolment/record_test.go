package enrolment

import (
	"testing"
	"time"
)

// TestLeavesAt checks that a record says when a deletion begins to keep its zone out by the time alone, so that at no
// moment before that it can be taken for one that never does.
func TestLeavesAt(t *testing.T) {
	t.Parallel()
	at := time.Now()
	ahead := &Record{Draining: true, DrainingAt: at}
	for _, early := range []time.Duration{time.Hour, deletionTime, deletionTime - 1, 1} {
		if got := ahead.LeavesAt(at.Add(-early)); !got.Equal(at.Add(-deletionTime)) {
			t.Errorf("%s before the deletion begins by its own clock: from %s on, want %s", early, got, at.Add(-deletionTime))
		}
		if left := deletionTime - early; ahead.Leaving(at.Add(-early)) != (left > 0) {
			t.Errorf("%s before: leaving is %t", early, left <= 0)
		}
	}
	for name, m := range map[string]*Record{
		"no record": nil, "not deleted": {}, "deleted for long": {Draining: true, DrainingAt: at.Add(-time.Hour)},
		"by an older server": {Draining: true},
	} {
		if got := m.LeavesAt(at); !got.IsZero() {
			t.Errorf("%s: from %s on", name, got)
		}
	}
}
