package store

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// MaxKeySize is the maximum total size of type, mesh, namespace and name of a resource, in bytes.
const MaxKeySize = 2048

// Transaction is a set of batches that become visible together or not at all. It is for use by one goroutine and holds
// the write lock of its View until Commit or Abort.
type Transaction struct {
	view     *View
	index    index
	revision uint64
	commits  []*Commit
	ended    bool
}

// Begin starts a transaction once the current one has ended.
func (v *View) Begin() *Transaction {
	v.writer.Lock()
	now := v.current.Load()
	t := &Transaction{view: v, index: now.index, revision: now.revision}
	t.index.seal()
	return t
}

// Apply evaluates a batch on the state that the previous batches leave and adds its effect to the transaction. Errors
// are those of Store.Apply. After an error the transaction is as if the batch had never been applied. The result is
// final only after Commit: the outcome of any batch, even a refused one, may depend on others in the transaction.
func (t *Transaction) Apply(b Batch) (*Commit, error) {
	now := t.view.now()
	p := staging{index: &t.index, now: now.Round(0).UTC(), revision: t.view.assigned + 1, synced: b.Synced,
		undecoded: t.view.undecoded}
	for i := range b.Ops {
		if err := p.add(&b.Ops[i]); err != nil {
			return nil, err
		}
	}
	if b.Check != nil {
		now := &snapshot{revision: t.revision, index: t.index}
		t.index.seal()
		if err := b.Check(now); err != nil {
			return nil, err
		}
	}
	changes := p.changes()
	if len(changes) == 0 {
		return &Commit{Revision: t.revision}, nil
	}
	for _, c := range changes {
		t.index.set(c.Old, c.New)
	}
	t.revision = p.revision
	// Never assigned again, even if the transaction is aborted: a revision identifies one content.
	t.view.assigned = p.revision
	commit := &Commit{Revision: p.revision, Changes: changes, Cause: b.Cause}
	if commit.Cause.Written.IsZero() {
		commit.Cause.Written = now
	}
	t.commits = append(t.commits, commit)
	return commit, nil
}

// All yields every resource as the transaction sees it. The transaction must not be written to during the iteration.
func (t *Transaction) All() iter.Seq[*resources.Resource] { return t.index.all }

// Commits returns the commits that changed something, oldest first. The slice is valid until the next Apply.
func (t *Transaction) Commits() []*Commit { return t.commits }

// Commit makes all batches visible to readers and wakes the watchers. It cannot fail.
func (t *Transaction) Commit() {
	if t.ended {
		return
	}
	if len(t.commits) > 0 {
		v := t.view
		for _, c := range t.commits {
			v.count(c.Changes)
		}
		log, notable := v.log(t.commits)
		v.publish(t.revision, t.index, log, notable)
	}
	t.Abort()
}

// Abort drops all batches. Their revisions are not assigned again. After Commit it does nothing.
func (t *Transaction) Abort() {
	if t.ended {
		return
	}
	t.ended = true
	t.view.writer.Unlock()
}

// staging computes the effect of a batch without applying it, so that a refused batch leaves no trace.
type staging struct {
	index    *index
	now      time.Time
	revision uint64
	synced   bool // Batch.Synced
	// undecoded is ViewConfig.Undecoded.
	undecoded bool
	// staged holds the change that the batch makes to each key, by first use, and at has the positions in it once there are
	// more than few.
	staged []staged
	at     map[resources.Key]int
}

// staged is the change of a key so far.
type staged struct {
	key resources.Key
	Change
}

// few is how many keys are looked for one after the other.
const few = 8

func (p *staging) add(op *Op) error {
	if op.Put == nil {
		return p.delete(op)
	}
	if err := storable(op.Put); err != nil {
		return err
	}
	key := op.Put.Key
	old := p.get(key)
	switch {
	case op.If.kind == absent && old != nil:
		return fmt.Errorf("%s exists: %w", key, ErrConflict)
	case op.If.kind == atRevision && old == nil:
		return fmt.Errorf("%s is gone, not at revision %d: %w", key, op.If.revision, ErrConflict)
	case op.If.kind == atRevision && old.Revision != op.If.revision:
		return fmt.Errorf("%s is at revision %d, not %d: %w", key, old.Revision, op.If.revision, ErrConflict)
	case old != nil && old.SameContent(op.Put):
		return nil
	}
	if !p.synced {
		if err := CheckSize(op.Put, old); err != nil {
			return err
		}
	}
	put := op.Put.Clone()
	if p.undecoded {
		put.Spec = put.Spec.Undecoded()
	}
	put.Revision = p.revision
	if old != nil && put.Version == old.Version {
		put.Version = "" // a version identifies one content, and this content differs
	}
	put.ModificationTime = p.now
	switch {
	case !put.CreationTime.IsZero():
		put.CreationTime = put.CreationTime.Round(0).UTC()
	case old != nil:
		put.CreationTime = old.CreationTime
	default:
		put.CreationTime = p.now
	}
	if put.ModificationTime.Before(put.CreationTime) {
		put.ModificationTime = put.CreationTime // a clock was set back, or is behind the origin's
	}
	p.stage(key, old, put)
	return nil
}

func (p *staging) delete(op *Op) error {
	old := p.get(op.Delete)
	switch {
	case op.If.kind == absent && old != nil:
		return fmt.Errorf("%s exists: %w", op.Delete, ErrConflict)
	case op.If.kind == atRevision && old == nil:
		return fmt.Errorf("%s: %w", op.Delete, ErrNotFound)
	case op.If.kind == atRevision && old.Revision != op.If.revision:
		return fmt.Errorf("%s is at revision %d, not %d: %w", op.Delete, old.Revision, op.If.revision, ErrConflict)
	case old != nil:
		p.stage(op.Delete, old, nil)
	}
	return nil
}

// get returns the resource under the key with the batch's changes so far.
func (p *staging) get(k resources.Key) *resources.Resource {
	if c := p.find(k); c != nil {
		return c.New
	}
	return p.index.get(k)
}

// find returns the change of a key so far; nil if there is none.
func (p *staging) find(k resources.Key) *staged {
	i, there := p.at[k]
	if p.at == nil {
		i = slices.IndexFunc(p.staged, func(s staged) bool { return s.key == k })
		there = i >= 0
	}
	if !there {
		return nil
	}
	return &p.staged[i]
}

// stage records the change that the batch makes to the key. old is the result of get.
func (p *staging) stage(k resources.Key, old, r *resources.Resource) {
	if earlier := p.find(k); earlier != nil {
		earlier.New = r
		return
	}
	p.staged = append(p.staged, staged{k, Change{Old: old, New: r}})
	switch n := len(p.staged); {
	case p.at != nil:
		p.at[k] = n - 1
	case n > few:
		p.at = make(map[resources.Key]int, 2*n)
		for i := range p.staged {
			p.at[p.staged[i].key] = i
		}
	}
}

// changes returns the net effect: at most one change for each key, none if its content is the same in the end.
func (p *staging) changes() []Change {
	changes := make([]Change, 0, len(p.staged))
	for i := range p.staged {
		c := p.staged[i].Change
		if c.Old == nil && c.New == nil || c.Old != nil && c.New != nil && c.Old.SameContent(c.New) {
			continue
		}
		changes = append(changes, c)
	}
	return changes
}

// storable refuses a resource that a store could not return unchanged. It does not validate its meaning.
func storable(r *resources.Resource) error {
	refuse := func(problem string) error { return fmt.Errorf("%s: %s: %w", r.Key, problem, ErrInvalid) }
	if _, ok := resources.LookupStored(r.Type); !ok {
		return refuse("the registry does not know the type")
	}
	if r.Name == "" {
		return refuse("the name is empty")
	}
	if r.Spec == nil {
		return refuse("the spec is nil")
	}
	size := 0
	for _, part := range []string{string(r.Type), r.Mesh, r.Namespace, r.Name} {
		size += len(part)
		if !plainText(part) {
			return refuse("a part of the key is not UTF-8 text, or contains NUL")
		}
	}
	if size > MaxKeySize {
		return refuse(fmt.Sprintf("the key has %d bytes, more than %d", size, MaxKeySize))
	}
	for label, value := range r.Labels {
		if !plainText(label) || !plainText(value) {
			return refuse(fmt.Sprintf("label %q is not UTF-8 text, or contains NUL", label))
		}
	}
	if r.Status != nil && !json.Valid(r.Status) {
		return refuse("the status is not JSON")
	}
	return nil
}

func plainText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, separator) < 0 }

// Adopt adds a commit that another server made durable. New of each change is the current resource of its key and is
// stored unchanged; if it is nil, Old carries the key. Adopt looks up the previous resource itself. revision must be
// higher than the view's. Revisions up to it are not assigned again. A transaction either adopts or applies, not both.
func (t *Transaction) Adopt(revision uint64, changes []Change) {
	commit := &Commit{Revision: revision}
	for _, c := range changes {
		c.Old = t.index.get(c.Key())
		if c.Old == nil && c.New == nil || c.Old != nil && c.New != nil && c.Old.Revision == c.New.Revision &&
			c.Old.SameContent(c.New) {
			continue
		}
		t.index.set(c.Old, c.New)
		commit.Changes = append(commit.Changes, c)
	}
	t.view.assigned = max(t.view.assigned, revision)
	// A revision without changes still counts: a caller that waits for it now has everything up to it.
	if revision > t.revision {
		t.revision = revision
		t.commits = append(t.commits, commit)
	}
}
