package kds

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// minBatch is the number of a message's changes that are made durable at once while others write: the next writer
	// waits for these, not for the whole message.
	minBatch = 256
	// maxBatch is the maximum: batches double while there is no other writer, so that a large zone's first lists cost
	// few writes.
	maxBatch = 8192
	// maxPause is the longest pause between two batches.
	maxPause = 100 * time.Millisecond
)

// batchSize decides how much of a zone's messages is made durable at once. The store serves its writers in order of
// arrival, so all waiting writers are served between two batches. The zero value is ready for use.
type batchSize struct {
	size     int
	revision uint64 // the revision of the last batch
	shared   bool   // another writer has committed since the batch before
}

// next returns the size of the next batch.
func (t *batchSize) next() int {
	t.size = min(max(t.size, minBatch), maxBatch)
	return t.size
}

// committed records a batch at a revision: the next is longer if no one else has written since the previous one.
func (t *batchSize) committed(revision uint64) {
	t.shared = t.revision > 0 && revision > t.revision+1
	if t.revision == 0 || t.shared {
		t.size = minBatch
	} else {
		t.size *= 2
	}
	t.revision = revision
}

// commit makes the operations of a changeset durable, unless this session was fenced off: what the global says as one
// batch, what a zone says in several. While others write, it rests after each for as long as it took, so that half of
// the time nobody waits for this zone. The last batch also records how much was seen of the peer's store. After an
// error, earlier batches are durable: the message is not acknowledged, and what they wrote is found unchanged when it
// is judged again.
func (v *receiver) commit(ctx context.Context, t resources.Type, p *changeset, said progress, cause store.Cause) error {
	if len(p.ops) == 0 {
		if v.notesBefore(t, p, said, 0) {
			return v.commitBatch(ctx, t, p, 0, 0, said, cause)
		}
		return v.session.fence()
	}
	for first := 0; first < len(p.ops); {
		end := len(p.ops)
		if v.batches(t) {
			end = min(end, first+v.batch.next())
		}
		began := time.Now()
		if err := v.commitBatch(ctx, t, p, first, end, said, cause); err != nil {
			if first > 0 && v.quota != nil {
				v.quota.counted = time.Time{} // the earlier batches count already
			}
			return err
		}
		first, p.durable = end, end
		if end < len(p.ops) && v.batch.shared {
			if err := rest(ctx, min(time.Since(began), maxPause)); err != nil {
				return err
			}
		}
	}
	return nil
}

// batches reports whether messages of a type are made durable in several batches. Live types cost no write.
func (v *receiver) batches(t resources.Type) bool {
	return v.arrival.Direction == exchange.ZoneToGlobal && v.storeOf(t) == v.store
}

// commitBatch commits the operations from first to end as one durable batch.
func (v *receiver) commitBatch(ctx context.Context, t resources.Type, p *changeset, first, end int, said progress,
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
	if v.batches(t) { // revisions of another store say nothing about who writes in this one
		v.batch.committed(commit.Revision)
	}
	for i := first; i < min(end, len(p.written)); i++ { // what is put comes before what is deleted
		p.copies[p.written[i].wire] = copyVersion{version: p.written[i].version, key: p.written[i].key,
			revision: commit.Revision}
	}
	return nil
}
