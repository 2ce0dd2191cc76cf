package kds

import (
	"testing"

	"github.com/causeway-mesh/causeway/lineage"
)

// TestWhatIsNoPoint checks that a peer's point of another form parses as nothing seen.
func TestWhatIsNoPoint(t *testing.T) {
	t.Parallel()
	for _, said := range [][]string{nil, {""}, {"w:1:2", "w:1:2"}, {"w:1"}, {"w:2:1"}, {"w:-1:2"}, {"a b:1:2"},
		{"w:1:99999999999999999999"}} {
		if got := parseSeen(said); got != (lineage.Seen{}) {
			t.Errorf("%q is %+v", said, got)
		}
	}
}
