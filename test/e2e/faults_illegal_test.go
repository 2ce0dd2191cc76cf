package e2e

import (
	"cmp"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// showIllegal prints the end of the parts that no order explains.
func showIllegal(t *testing.T, model porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	parts := [][]porcupine.Operation{history}
	if model.Partition != nil {
		parts = model.Partition(history)
	}
	for _, part := range parts {
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
		n := sort.Search(len(part), func(n int) bool {
			return porcupine.CheckOperationsTimeout(model, began(part, n), 10*time.Second) == porcupine.Illegal
		})
		if n == len(part) {
			continue
		}
		for _, o := range part[max(0, n-12) : n+1] {
			t.Logf("%12s %12s client %d %+v -> %+v", time.Duration(o.Call), time.Duration(o.Return), o.ClientId,
				o.Input, o.Output)
		}
		return
	}
}

// began returns the first operations of a part that is ordered by their ends, and those that had begun by then, which
// may take effect later.
func began(part []porcupine.Operation, n int) []porcupine.Operation {
	some := slices.Clone(part[:n+1])
	for _, o := range part[n+1:] {
		unknown := o
		unknown.Return = never
		switch in := o.Input.(type) {
		case batchIn:
			unknown.Output = batchOut{unknown: true}
			if in.read {
				continue
			}
		case keysIn:
			unknown.Output = keysOut{unknown: true}
			if in.kind == "list" {
				continue
			}
		case tokenIn:
			if in.kind == "verify" {
				continue
			}
		}
		if o.Call <= part[n].Return {
			some = append(some, unknown)
		}
	}
	return some
}
