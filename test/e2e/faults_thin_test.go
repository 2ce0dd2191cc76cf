package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// judgeTimeout limits Porcupine's time for a history. A thin one takes less than a second.
const judgeTimeout = 5 * time.Minute

// thin removes each read whose time spans that of another with the same answer. Such a read changes nothing and fits
// right after the other, so the rest fits an order of events exactly if all does. An isolated replica shows the same
// state all the time, at any time since it was last known to be current: hundreds of concurrent reads, all of whose
// orders Porcupine would try.
func thin(history []porcupine.Operation) []porcupine.Operation {
	sorted := slices.Clone(history)
	slices.SortStableFunc(sorted, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(a.Return, b.Return), cmp.Compare(b.Call, a.Call))
	})
	begun := map[string]int64{} // by what was seen, the latest beginning of those that ended before
	return slices.DeleteFunc(sorted, func(o porcupine.Operation) bool {
		saw := look(o)
		if saw == "" {
			return false
		}
		last, again := begun[saw]
		if again && o.Call <= last {
			return true
		}
		begun[saw] = o.Call
		return false
	})
}

// look returns the request and answer of an operation that changes nothing; "" for others.
func look(o porcupine.Operation) string {
	switch in := o.Input.(type) {
	case batchIn:
		if in.read {
			return fmt.Sprint(in.group, o.Output.(batchOut).values)
		}
	case keysIn:
		if in.kind == "list" {
			return o.Output.(keysOut).said
		}
	case tokenIn:
		if in.kind == "verify" {
			return fmt.Sprint(in.id, o.Output)
		}
	case asking:
		if out := o.Output.(answer); in.kind == "read" && !out.unknown {
			return fmt.Sprint(in.key, in.least, out.was)
		}
	}
	return ""
}

// tokenHistory has clients of three replicas present one token repeatedly. The first replica knows everything at once,
// the others learn of the token and of its revocation much later, and nothing shows since when they are current.
func tokenHistory() (history []porcupine.Operation, revoked int64) {
	const looks, heard, end = 600, 200, 300
	random := rand.New(rand.NewPCG(1, 1))
	for at := range int64(looks) {
		server, begun := random.IntN(3), int64(0)
		out := at > heard && at < end+200
		if server == 0 {
			begun, out = at, at < end
		}
		history = append(history, porcupine.Operation{ClientId: server, Input: tokenIn{"a", "verify"}, Call: 4 * begun,
			Output: out, Return: 4*at + 3})
	}
	history = append(history, porcupine.Operation{ClientId: 3, Input: tokenIn{"a", "revoke"}, Call: 4 * end, Output: true,
		Return: 4*end + 3})
	return history, 4*end + 3
}

// TestHistoriesAreDecided checks that Porcupine decides a history of replicas that are isolated for long, and that the
// thinned one still shows a defect.
func TestHistoriesAreDecided(t *testing.T) {
	t.Parallel()
	history, revoked := tokenHistory()
	last := history[len(history)-2].Return
	verify := func(call, end int64, out bool) porcupine.Operation {
		return porcupine.Operation{ClientId: 4, Input: tokenIn{"a", "verify"}, Call: call, Output: out, Return: end}
	}
	for name, c := range map[string]struct {
		more []porcupine.Operation
		want porcupine.CheckResult
	}{
		"as it is":                          {nil, porcupine.Ok},
		"valid, by an older view":           {[]porcupine.Operation{verify(revoked, last, true)}, porcupine.Ok},
		"valid, after it was revoked":       {[]porcupine.Operation{verify(revoked+1, last, true)}, porcupine.Illegal},
		"ended, before anybody revoked it":  {[]porcupine.Operation{verify(4*250, 4*251, false)}, porcupine.Illegal},
		"unheard of, before anybody saw it": {[]porcupine.Operation{verify(0, 1, false)}, porcupine.Ok},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newRecorded(nil, nil, nil).tokenModel()
			all := append(slices.Clone(history), c.more...)
			if got := porcupine.CheckOperationsTimeout(model, thin(all), judgeTimeout); got != c.want {
				t.Errorf("Porcupine says %s, want %s", got, c.want)
			}
		})
	}
}
