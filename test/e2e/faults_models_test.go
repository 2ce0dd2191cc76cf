package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Batches: the policies of a group are one object that is read and written as a whole.
const groupSize = 3

type (
	batchIn struct {
		group int
		// put has the value of each policy, 0 for one that is not in the batch; spoilt adds a document that is refused.
		put    [groupSize]int
		spoilt bool
		read   bool
	}
	batchOut struct {
		unknown, refused bool
		results, values  [groupSize]string
	}
)

func (in *batchIn) step(state [groupSize]int, out batchOut) (bool, [groupSize]int) {
	if in.read {
		for i, v := range state {
			if out.values[i] != fmt.Sprint(v) {
				return false, state
			}
		}
		return true, state
	}
	if in.spoilt {
		return out.unknown || out.refused, state
	}
	if out.refused {
		return false, state
	}
	next := state
	for i, v := range in.put {
		if v == 0 {
			continue
		}
		want := "updated"
		switch state[i] {
		case 0:
			want = "created"
		case v:
			want = "unchanged"
		}
		if next[i] = v; !out.unknown && out.results[i] != want {
			return false, state
		}
	}
	return true, next
}

func batchModel() porcupine.Model {
	return porcupine.Model{
		Partition: by(func(in any) string { return fmt.Sprint(in.(batchIn).group) }),
		Init:      func() any { return [groupSize]int{} },
		Step: func(state, in, out any) (bool, any) {
			b := in.(batchIn)
			return b.step(state.([groupSize]int), out.(batchOut))
		},
	}
}

// by partitions a history by a property of the input.
func by(key func(in any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (out [][]porcupine.Operation) {
		parts := map[string][]porcupine.Operation{}
		for _, o := range history {
			parts[key(o.Input)] = append(parts[key(o.Input)], o)
		}
		for _, part := range parts {
			out = append(out, part)
		}
		return out
	}
}

// Tokens: each is valid until it is revoked, or the key that signed it is retired. A replica that does not yet have its
// key treats it as invalid: a token does not make a replica query etcd.
type tokenIn struct{ id, kind string }

type tokenState int

const (
	unheard tokenState = iota
	valid
	ended
)

func (r *recorded) tokenModel() porcupine.Model {
	first := unheard
	if len(r.servers) == 1 {
		first = valid
	}
	return porcupine.Model{
		Partition: by(func(in any) string { return in.(tokenIn).id }),
		Init:      func() any { return first },
		Step: func(state, in, out any) (bool, any) {
			switch {
			case in.(tokenIn).kind != "verify":
				return true, ended
			case out.(bool):
				return state != ended, valid
			}
			return state != valid, state
		},
	}
}

// Keys: a list whose last key signs.
type (
	keysIn struct{ kind, id string }
	// keysOut is the answer: the id of the new key, a list, or done, absent or signing.
	keysOut struct {
		unknown bool
		said    string
	}
)

// keysModel knows the ids that were seen: a rotation with an unknown outcome created one that no answer reported, or
// that nobody saw.
func (r *recorded) keysModel(first string) porcupine.Model {
	untold := r.untold(first)
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(state, in, out any) []any { return keysStep(state.(string), in.(keysIn), out.(keysOut), untold) },
	}).ToModel()
}

// untold returns the ids that were seen but that no answer attributes to a rotation.
func (r *recorded) untold(first string) []string {
	told := strings.Fields(first)
	for _, o := range r.history["keys"] {
		if o.Input.(keysIn).kind == "rotate" {
			told = append(told, o.Output.(keysOut).said)
		}
	}
	return slices.DeleteFunc(slices.Clone(r.ids), func(id string) bool { return slices.Contains(told, id) })
}

// keysThatMatter removes operations that had no visible effect, because each unknown outcome doubles the cost of
// judging: a rotation if each id has another that created it, and the retirement of a key that another one retired. An
// id never returns, so the first unknown retirement of a key stands for all.
func (r *recorded) keysThatMatter(first string) []porcupine.Operation {
	history := slices.Clone(r.history["keys"])
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	retired, untold := map[string]bool{}, r.untold(first)
	for _, o := range history {
		if in, out := o.Input.(keysIn), o.Output.(keysOut); in.kind == "retire" && out.said == "done" && !out.unknown {
			retired[in.id] = true
		}
	}
	return slices.DeleteFunc(history, func(o porcupine.Operation) bool {
		in := o.Input.(keysIn)
		if !o.Output.(keysOut).unknown {
			return false
		}
		if in.kind == "rotate" {
			return len(untold) == 0
		}
		again := retired[in.id]
		retired[in.id] = true
		return again
	})
}

func keysStep(state string, in keysIn, out keysOut, untold []string) []any {
	ids := strings.Fields(state)
	switch {
	case in.kind == "list":
		if out.said != state {
			return nil
		}
	case in.kind == "rotate" && out.unknown:
		next := []any{state}
		for _, id := range untold {
			if !slices.Contains(ids, id) {
				next = append(next, state+" "+id)
			}
		}
		return next
	case in.kind == "rotate":
		return []any{state + " " + out.said}
	default:
		at, said := slices.Index(ids, in.id), "done"
		switch {
		case at < 0:
			said = "absent"
		case at == len(ids)-1:
			said = "signing"
		}
		if !out.unknown && out.said != said {
			return nil
		}
		if said == "done" {
			return []any{strings.Join(slices.Delete(slices.Clone(ids), at, at+1), " ")}
		}
	}
	return []any{state}
}

// endings adds the retirement of its key to the history of each token.
func (r *recorded) endings() {
	used := map[string]bool{}
	for _, o := range r.history["tokens"] {
		used[o.Input.(tokenIn).id] = true
	}
	for _, t := range r.issued {
		for _, o := range r.history["keys"] {
			in, out := o.Input.(keysIn), o.Output.(keysOut)
			if used[t.id] && in.kind == "retire" && in.id == t.key && (out.unknown || out.said == "done") {
				o.Input, o.Output = tokenIn{t.id, "retire"}, true
				r.history["tokens"] = append(r.history["tokens"], o)
			}
		}
	}
	r.history["tokens"] = once(r.history["tokens"])
}

// once keeps one end of an unknown outcome of each token, the first request: it may stand for the others.
func once(history []porcupine.Operation) []porcupine.Operation {
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	seen := map[string]bool{}
	return slices.DeleteFunc(history, func(o porcupine.Operation) bool {
		in := o.Input.(tokenIn)
		again := o.Return == never && seen[in.id]
		seen[in.id] = seen[in.id] || o.Return == never
		return again
	})
}

// judge checks each history, and that it is long enough to be significant.
func (r *recorded) judge(t *testing.T, first string, least int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endings()
	r.history["keys"] = r.keysThatMatter(first)
	for name, model := range map[string]porcupine.Model{"batches": batchModel(), "tokens": r.tokenModel(),
		"keys": r.keysModel(first)} {
		history, start := thin(r.history[name]), time.Now()
		got := porcupine.CheckOperationsTimeout(model, history, judgeTimeout)
		t.Logf("%s: %d operations, %d of them apart: Porcupine says %s after %s", name, len(r.history[name]),
			len(history), got, time.Since(start).Round(time.Millisecond))
		if got != porcupine.Ok || len(r.history[name]) < least {
			t.Errorf("%s: %d operations, want %d of which it is known that they fit one order of events: %s", name,
				len(r.history[name]), least, got)
			showIllegal(t, model, history)
		}
	}
	t.Logf("seed %d: %d unknown outcomes", *crashSeed, r.unknowns)
}
