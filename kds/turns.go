package kds

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// shortTurn is the number of a message's changes that are made durable at once while others write: the next writer
	// waits for these, not for the whole message.
	shortTurn = 256
	// longTurn is the maximum: turns double while there is no other writer, so that a large zone's first lists cost few
	// writes.
	longTurn = 8192
	// longRest is the longest rest between two turns.
	longRest = 100 * time.Millisecond
)

// turns decides how much of a zone's messages is made durable at once. The store serves its writers in order of arrival,
// so all waiting writers are served between two turns. The zero value is ready for use.
type turns struct {
	size   int
	last   uint64 // the revision of the last turn
	shared bool   // another writer has committed since the turn before
}

// next returns the size of the next turn.
func (t *turns) next() int {
	t.size = min(max(t.size, shortTurn), longTurn)
	return t.size
}

// taken records a turn at a revision: the next is longer if no one else has written since the previous one.
func (t *turns) taken(revision uint64) {
	t.shared = t.last > 0 && revision > t.last+1
	if t.last == 0 || t.shared {
		t.size = shortTurn
	} else {
		t.size *= 2
	}
	t.last = revision
}

// commit makes the operations of a changeset durable, unless this session was fenced off: what the global says as one
// batch, what a zone says in turns. While others write, it rests after each for as long as it took, so that half of the
// time nobody waits for this zone. The last batch also records how much was seen of the peer's store. After an error,
// earlier turns are durable: the message is not acknowledged, and what they wrote is found unchanged when it is judged
// again.
func (v *receiver) commit(ctx context.Context, t resources.Type, p *changeset, said progress, cause store.Cause) error {
	if len(p.ops) == 0 {
		if v.notesBefore(t, p, said, 0) {
			return v.commitTurn(ctx, t, p, 0, 0, said, cause)
		}
		return v.session.fence()
	}
	for first := 0; first < len(p.ops); {
		end := len(p.ops)
		if v.takesTurns(t) {
			end = min(end, first+v.turns.next())
		}
		began := time.Now()
		if err := v.commitTurn(ctx, t, p, first, end, said, cause); err != nil {
			if first > 0 && v.quota != nil {
				v.quota.counted = time.Time{} // the earlier turns count already
			}
			return err
		}
		first, p.durable = end, end
		if end < len(p.ops) && v.turns.shared {
			if err := rest(ctx, min(time.Since(began), longRest)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takesTurns reports whether messages of a type are made durable in turns. Live types cost no write.
func (v *receiver) takesTurns(t resources.Type) bool {
	return v.arrival.Direction == exchange.ZoneToGlobal && v.storeOf(t) == v.store
}

// commitTurn commits the operations from first to end as one durable batch.
func (v *receiver) commitTurn(ctx context.Context, t resources.Type, p *changeset, first, end int, said progress,
	cause store.Cause) error {
	ops := p.ops[first:end:end]
	if end == len(p.ops) && !isLive(t) { // revisions of live types are those of another store
		seen, err := v.met.see(ctx, said)
		if err != nil {
			return err
		}
		ops = append(ops, seen...)
	}
	notes := v.notesBefore(t, p, said, end)
	if notes {
		v.met.noting.Lock()
		defer v.met.noting.Unlock()
		noted, err := v.met.noteBefore(ctx, t, p.before)
		if err != nil {
			return err
		}
		ops = append(ops, noted...)
	}
	commit, err := v.storeOf(t).Apply(ctx, store.Batch{Ops: ops, Check: v.checkOf(t), Cause: cause,
		Synced: v.arrival.Direction == exchange.GlobalToZone})
	if err != nil {
		return err
	}
	if notes {
		v.met.note(t, p.before)
	}
	if v.takesTurns(t) { // revisions of another store say nothing about who writes in this one
		v.turns.taken(commit.Revision)
	}
	for i := first; i < min(end, len(p.written)); i++ { // what is put comes before what is deleted
		p.copies[p.written[i].wire] = copyVersion{version: p.written[i].version, key: p.written[i].key,
			revision: commit.Revision}
	}
	return nil
}
