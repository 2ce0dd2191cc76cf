package kds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Before is how many copies of each type were here before a list that has not come to its end, or whose deletions are
// held.
type Before map[resources.Type]int

// ParseBefore reads String's form.
func ParseBefore(raw string) (Before, error) {
	b := Before{}
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		return nil, fmt.Errorf("the number of copies before a list: %w", err)
	}
	return b, nil
}

// String implements fmt.Stringer.
func (b Before) String() string {
	raw, _ := json.Marshal(map[resources.Type]int(b)) // numbers by name: without an error
	return string(raw)
}

// before returns how many copies of a type were here before the list or answer of which p's message is a part. What the
// list itself has added does not count, in whatever parts, batches, sessions and processes that was stored.
func (v *receiver) before(p *changeset, t resources.Type, state *reception) int {
	if state.before == nil {
		n := v.count(p, t)
		if noted, ok := v.met.before(t); ok {
			n = min(n, noted)
		}
		state.before = &n
	}
	return *state.before
}

func (v *receiver) count(p *changeset, t resources.Type) (n int) {
	for range v.copies(p.snapshot, t) {
		n++
	}
	return n
}

// notesBefore reports whether the batch up to the operation end has to record how many copies were here before: those of
// the list that are stored before it is whole, or beside deletions that are held, will look like copies that were.
func (v *receiver) notesBefore(t resources.Type, p *changeset, said progress, end int) bool {
	if v.met == nil || p.before <= guardedDeletions || isLive(t) {
		return false
	}
	if _, noted := v.met.before(t); noted {
		return false
	}
	whole := end == len(p.ops) && !said.more
	return len(p.held) > 0 || !whole && len(p.written) > 0
}

// before returns the number of copies of a type that were here before a list of this or an earlier session, if it did not
// come to its end or its deletions are held.
func (a *peerStore) before(t resources.Type) (n int, ok bool) {
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok = a.noted[t]
	return n, ok
}

// recall reads what before returns from the store, where a process before this one, or another replica, has left it.
func (a *peerStore) recall(ctx context.Context) error {
	if a.kept == nil {
		return nil
	}
	noted, err := a.kept.Before(ctx)
	if err != nil || noted == nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = noted
	return nil
}

// noteBefore returns the operations that record n as the number of copies of a type, for the batch that makes it differ.
// Once that is stored, the caller calls note. It holds a.noting from before the one until after the other.
func (a *peerStore) noteBefore(ctx context.Context, t resources.Type, n int) ([]store.Op, error) {
	if a.kept == nil {
		return nil, nil
	}
	a.mu.Lock()
	noted := maps.Clone(a.noted)
	a.mu.Unlock()
	if noted == nil {
		noted = Before{}
	}
	noted[t] = n
	return a.kept.NoteBefore(ctx, noted)
}

// note records what noteBefore has stored. The type is not compared in full until its list is here.
func (a *peerStore) note(t resources.Type, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noted == nil {
		a.noted = Before{}
	}
	a.noted[t] = n
	delete(a.compared, t)
}

// forgetBefore drops the numbers of types whose list is here as a whole, and of which no deletion is held. It does not
// hold a.mu while it writes: what answers ask of a must not wait for a disk.
func (a *peerStore) forgetBefore(ctx context.Context) error {
	a.noting.Lock()
	defer a.noting.Unlock()
	noted, left := a.settled()
	if len(left) == len(noted) {
		return nil
	}
	if a.kept != nil {
		ops, err := a.kept.NoteBefore(ctx, left)
		if err == nil && len(ops) > 0 {
			_, err = a.store.Apply(ctx, store.Batch{Ops: ops})
		}
		if err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted = left
	return nil
}

// settled returns the recorded numbers, and those of them that are still needed.
func (a *peerStore) settled() (noted, left Before) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.noted) == 0 {
		return nil, nil
	}
	held := a.ledger.HeldCounts(a.from)
	left = maps.Clone(a.noted)
	maps.DeleteFunc(left, func(t resources.Type, _ int) bool { return a.compared[t] && held[t] == 0 })
	return a.noted, left
}
