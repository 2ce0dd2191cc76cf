package e2e

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// judge checks the history, and that it is long enough to be significant.
func (h *apiHistory) judge(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	t.Logf("seed %d: %d operations in %s: %v", *crashSeed, len(h.operations), time.Since(h.begin).Round(time.Second),
		h.counts)
	if certain := h.certain(); certain < leastAnswers {
		t.Fatalf("%d operations were answered, want %d to show anything", certain, leastAnswers)
	}
	start, some := time.Now(), thin(h.operations)
	got := porcupine.CheckOperationsTimeout(apiRegister(), some, judgeTimeout)
	t.Logf("%d of them apart: Porcupine says %s after %s", len(some), got, time.Since(start).Round(time.Millisecond))
	if got != porcupine.Ok {
		t.Errorf("the history is not linearizable: %s", got)
		h.narrow(t)
	}
}

// narrow prints the policies whose histories are inconsistent.
func (h *apiHistory) narrow(t *testing.T) {
	t.Helper()
	shown := 0
	for _, part := range apiRegister().Partition(h.operations) {
		// The last operation of the shortest inconsistent prefix is the impossible one.
		least := shortest(part)
		if len(least) == 0 {
			continue
		}
		if shown++; shown > 3 {
			return
		}
		for _, o := range least[max(0, len(least)-25):] {
			t.Logf("%12s %12s client %d %+v -> %+v", time.Duration(o.Call), time.Duration(o.Return), o.ClientId,
				o.Input, o.Output)
		}
	}
}

// shortest returns the operations begun before the end of the first operation that is inconsistent with the earlier
// ones; nil if all are consistent.
func shortest(part []porcupine.Operation) []porcupine.Operation {
	fits := func(until int64) ([]porcupine.Operation, bool) {
		var some []porcupine.Operation
		for _, o := range part {
			switch {
			case o.Return <= until:
				some = append(some, o)
			case o.Call <= until && o.Input.(asking).kind != "read":
				o.Return, o.Output = 1<<62, answer{unknown: true}
				some = append(some, o)
			}
		}
		return some, porcupine.CheckOperationsTimeout(apiRegister(), some, 10*time.Second) != porcupine.Illegal
	}
	low, high := int64(0), int64(0)
	for _, o := range part {
		if o.Return < 1<<62 {
			high = max(high, o.Return)
		}
	}
	if _, ok := fits(high); ok {
		return nil
	}
	for high-low > int64(time.Microsecond) {
		if middle := (low + high) / 2; middle > low {
			if _, ok := fits(middle); ok {
				low = middle
			} else {
				high = middle
			}
		}
	}
	some, _ := fits(high)
	return some
}
