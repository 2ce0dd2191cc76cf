package kubernetes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// maxBatch limits the objects of one batch.
	maxBatch = 500
	// retryInterval is how often the feed retries what failed or waits.
	retryInterval = 2 * time.Second
)

// feed writes users' objects to the store until ctx ends.
func (b *Bridge) feed(ctx context.Context) error {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.work:
		case <-ticker.C:
			b.retryWaiting(ctx)
			b.retryHeld(ctx)
		}
		for b.feedOnce(ctx) && ctx.Err() == nil {
		}
		b.compareAll(ctx)
	}
}

// queued is a change that the feed is processing.
type queued struct {
	id     objectID
	change *change
	doc    *resources.Resource
}

// feedOnce stores one batch. It returns false if there is nothing more to do now.
func (b *Bridge) feedOnce(ctx context.Context) bool {
	batch := b.dequeue()
	if len(batch) == 0 {
		return false
	}
	var f api.Feed
	var puts []*queued
	for i := range batch {
		one := &batch[i]
		switch {
		case one.change.object == nil:
			b.gone(one, &f)
		case b.isCopy(one.id.Type, one.change.object):
			b.sawCopy(one)
		case !Fed(one.id.Type):
			b.sawForeign(one)
		default:
			if one.doc = b.read(one); one.doc != nil {
				puts = append(puts, one)
				f.Puts = append(f.Puts, one.doc)
			}
		}
	}
	if f.Deletes = b.permitted(ctx, f.Deletes, false); len(f.Puts)+len(f.Deletes) == 0 {
		return true
	}
	result, err := b.Routes.Feed(ctx, f)
	if err != nil {
		b.Log.Error("cannot store users' objects from Kubernetes; trying again", "objects", len(batch), "error", err)
		b.putBack(batch)
		for _, d := range f.Deletes { // their objects are already forgotten
			b.delay(d)
		}
		return false
	}
	b.settle(puts, &f, result)
	return true
}

// dequeue returns the next changes, in order of dependency: referenced resources first.
func (b *Bridge) dequeue() []queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]queued, 0, min(len(b.pending), maxBatch))
	for id, c := range b.pending {
		out = append(out, queued{id: id, change: c})
	}
	rank := map[resources.Type]int{}
	for i, k := range Kinds() {
		rank[k.Type] = i
	}
	slices.SortFunc(out, func(x, y queued) int {
		return cmp.Or(cmp.Compare(rank[x.id.Type], rank[y.id.Type]), cmp.Compare(x.id.Namespace, y.id.Namespace),
			cmp.Compare(x.id.Name.Name, y.id.Name.Name))
	})
	out = out[:min(len(out), maxBatch)]
	for _, one := range out {
		delete(b.pending, one.id)
	}
	return out
}

// putBack returns changes that were not stored, unless there are newer ones.
func (b *Bridge) putBack(batch []queued) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range batch {
		if b.pending[one.id] == nil && !(one.change.object != nil && b.isCopy(one.id.Type, one.change.object)) {
			b.pending[one.id] = one.change
		}
	}
}

// gone notes that an object is gone, and adds the deletion of its resource, unless the deletion was not seen: compare
// judges that.
func (b *Bridge) gone(one *queued, f *api.Feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[one.id.Type]
	known := k.objects[one.id.Name]
	if known == nil {
		return
	}
	delete(b.waiting, one.id)
	delete(b.due, one.id)
	delete(k.objects, one.id.Name)
	if known.copy {
		b.projectLocked(one.id)
		return
	}
	if known.key != (resources.Key{}) && !one.change.unseen {
		f.Deletes = append(f.Deletes, api.FeedDelete{Key: known.key, UID: known.uid})
	}
}

// read decodes an object, and notes its state. It returns nil if the object is not valid.
func (b *Bridge) read(one *queued) *resources.Resource {
	o := one.change.object
	doc, err := decoded(o.Raw, b.Home)
	if forged := labelled(o); err == nil && forged != nil {
		err = forged
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[one.id.Type]
	known := k.objects[one.id.Name]
	if known == nil || known.uid != o.Meta.UID || known.copy {
		b.replacedLocked(known)
		known = &objectState{uid: o.Meta.UID}
		k.objects[one.id.Name] = known
	}
	first := known.version == ""
	same := !first && known.generation == o.Meta.Generation && maps.Equal(known.labels, o.Meta.Labels)
	known.labels, known.unjudged = o.Meta.Labels, known.unjudged || !same
	known.generation, known.version = o.Meta.Generation, o.Meta.ResourceVersion
	known.conditions, known.observed = statusIn(o)
	delete(b.waiting, one.id)
	if err != nil {
		if known.refused == nil || !same {
			b.Log.Warn("an object in Kubernetes is not valid, and has no effect", "type", one.id.Type, "object",
				one.id.Name.String(), "error", err)
		}
		known.refused, known.unjudged = err, false
		b.dueLocked(one.id, 0)
		return nil
	}
	if !same {
		known.refused = nil // of another generation, or of other labels: nothing is known of this one
	}
	if known.unjudged && !first {
		b.dueLocked(one.id, reportInterval) // usually the store has it before
	}
	doc = withoutRole(doc)
	doc.Object = resources.Object{UID: o.Meta.UID, Generation: o.Meta.Generation}
	doc.CreationTime = o.Meta.CreationTimestamp
	return doc
}

// replacedLocked allows removal of an object's resource after another object of the same name arrived before the
// deletion of the first.
func (b *Bridge) replacedLocked(known *objectState) {
	if known != nil && known.key != (resources.Key{}) {
		b.delayLocked(api.FeedDelete{Key: known.key, UID: known.uid})
	}
}

// withoutRole returns doc without the label of its role, which follows from the spec. The webhook keeps it correct.
// While the webhook is down, it may belong to an earlier spec.
func withoutRole(doc *resources.Resource) *resources.Resource {
	if _, ok := doc.Labels[resources.LabelPolicyRole]; !ok {
		return doc
	}
	doc = doc.Clone()
	delete(doc.Labels, resources.LabelPolicyRole)
	return doc
}

// settle notes the result of the documents and deletions of a batch.
func (b *Bridge) settle(puts []*queued, f *api.Feed, result *api.FeedResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range puts {
		b.settleLocked(one, result.Refused[one.doc.Key])
	}
	for _, d := range f.Deletes {
		if err := result.Refused[d.Key]; err != nil {
			b.holdLocked(d, heldInUse, api.Explained(err).Error())
		}
	}
}

// settleLocked notes the result of one document, unless there is a newer one of the object.
func (b *Bridge) settleLocked(one *queued, refused error) {
	k := b.kinds[one.id.Type]
	known := k.objects[one.id.Name]
	if known == nil || known.uid != one.doc.Object.UID || known.generation != one.doc.Object.Generation {
		return
	}
	was := known.refused
	known.refused, known.unjudged = refused, false
	if refused == nil {
		if known.key != (resources.Key{}) && known.key != one.doc.Key { // it moved to another mesh
			b.delayLocked(api.FeedDelete{Key: known.key, UID: known.uid})
		}
		known.key = one.doc.Key
		delete(k.held, one.doc.Key)
		delete(b.waiting, one.id)
	} else {
		b.waiting[one.id] = one.doc
	}
	if refused != nil && was != nil && was.Error() == refused.Error() {
		return
	}
	if refused != nil {
		b.Log.Warn("an object in Kubernetes is not accepted", "type", one.id.Type, "object", one.id.Name.String(),
			"error", refused)
	}
	known.wait = 0
	b.dueLocked(one.id, 0)
}

// retryWaiting retries documents that the store refused.
func (b *Bridge) retryWaiting(ctx context.Context) {
	b.mu.Lock()
	var puts []*queued
	var f api.Feed
	for id, doc := range b.waiting {
		if len(puts) == maxBatch {
			break
		}
		puts = append(puts, &queued{id: id, doc: doc})
		f.Puts = append(f.Puts, doc)
	}
	b.mu.Unlock()
	if len(puts) == 0 {
		return
	}
	if result, err := b.Routes.Feed(ctx, f); err == nil {
		b.settle(puts, &f, result)
	}
}

// complete reports whether all kinds that the API server knows were listed.
func (b *Bridge) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.completeLocked()
}

func (b *Bridge) completeLocked() bool {
	for _, k := range b.kinds {
		if !k.listed && !k.absent {
			return false
		}
	}
	return len(b.pending) == 0
}
