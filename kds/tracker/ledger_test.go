package tracker

import (
	"testing"
	"time"
)

// TestNoLagWhenNothingIsMissing checks that changes that do not concern the peer leave no lag.
func TestNoLagWhenNothingIsMissing(t *testing.T) {
	t.Parallel()
	n := &Line{behind: time.Now().Add(-time.Minute)}
	n.UpToDate(7)
	if n.acknowledged != 7 || !n.behind.IsZero() {
		t.Errorf("acknowledged %d, behind since %v: want 7 and no lag", n.acknowledged, n.behind)
	}
}
