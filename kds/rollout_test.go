package kds

import (
	"strconv"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
)

// TestRolloutOfMoreThanIsRemembered: a zone that refuses more than is kept by name has not acknowledged anything for
// certain, neither while it is here nor once it is gone and less is kept.
func TestRolloutOfMoreThanIsRemembered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused int
		rest    bool
		unknown int
	}{
		"all are remembered":             {maxRefusals, false, 0},
		"one more":                       {maxRefusals + 1, false, 1},
		"gone, all remembered":           {keptRefusals, true, 0},
		"gone, some are not remembered":  {keptRefusals + 1, true, 1},
		"nothing is refused, it is gone": {0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, over, f := newLedger(), &overLimits{}, NewRefusals()
			l.session(true, time.Now())
			key := lineKey{exchange.GlobalToZone, "MeshTimeout"}
			l.line(key.direction, key.typ, true).upToDate(7)
			for i := range tt.refused {
				r := Refusal{Direction: key.direction, Type: key.typ, ByPeer: true, Name: strconv.Itoa(i)}
				over.meet(limitRefusals, "", maxRefusals, f.settle(r, []string{r.Name}, []Refusal{r}))
			}
			if tt.rest {
				over.meet(limitRefusals, "", keptRefusals, f.rest())
			}
			var z RolloutZones
			z.add("zone-1", 7, l, nil, over, key, time.Now())
			if len(z.Unknown) != tt.unknown || z.Acknowledged != 1-tt.unknown || z.Has("zone-1") == (tt.unknown == 1) {
				t.Errorf("unknown %+v, acknowledged %d: want %d unknown", z.Unknown, z.Acknowledged, tt.unknown)
			}
		})
	}
}
