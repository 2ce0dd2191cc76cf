package tracker

import (
	"strconv"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
)

// TestRolloutOfMoreThanIsRemembered checks that a zone with more refusals than are kept by name counts as unknown,
// while it is connected, and once it is offline and fewer are kept.
func TestRolloutOfMoreThanIsRemembered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused int
		rest    bool
		unknown int
	}{
		"all are remembered":             {MaxRefusals, false, 0},
		"one more":                       {MaxRefusals + 1, false, 1},
		"gone, all remembered":           {KeptRefusals, true, 0},
		"gone, some are not remembered":  {KeptRefusals + 1, true, 1},
		"nothing is refused, it is gone": {0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, over, f := NewLedger(time.Now, nil), NewOver(time.Now, nil), NewRefusals(time.Now, nil)
			l.Session(true, time.Now())
			key := LineKey{Direction: exchange.GlobalToZone, Type: "MeshTimeout"}
			l.Line(key.Direction, key.Type, true).UpToDate(7)
			for i := range tt.refused {
				r := Refusal{Direction: key.Direction, Type: key.Type, ByPeer: true, Name: strconv.Itoa(i)}
				over.Meet(LimitRefusals, "", MaxRefusals, f.Settle(r, []string{r.Name}, []Refusal{r}))
			}
			if tt.rest {
				over.Meet(LimitRefusals, "", KeptRefusals, f.Rest())
			}
			var z RolloutZones
			z.Add("zone-1", 7, l, nil, over, key, time.Now())
			if len(z.Unknown) != tt.unknown || z.Acknowledged != 1-tt.unknown || z.Has("zone-1") == (tt.unknown == 1) {
				t.Errorf("unknown %+v, acknowledged %d: want %d unknown", z.Unknown, z.Acknowledged, tt.unknown)
			}
		})
	}
}
