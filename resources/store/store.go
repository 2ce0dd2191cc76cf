package store

import (
	"context"
	"iter"

	"github.com/causeway-mesh/causeway/resources"
)

// Reader is a view of a store in memory. All methods are safe for concurrent use, never block on a writer and never
// touch a disk.
type Reader interface {
	// Snapshot returns what the store holds now; it never changes and may be kept.
	Snapshot() Snapshot
	// Changes returns the commits after revision since, oldest first, in time proportional to their number. ok is false when
	// the window no longer reaches back to since (or since is ahead of the store): compare in full then. Revisions have
	// gaps where writes failed. The slice is the caller's, the commits are shared and must not be changed.
	Changes(since uint64) (commits []*Commit, ok bool)
	// Changed returns the current revision and a channel that is closed by the first commit after it. All callers share
	// the channel, so any number may wait. One that waits, however long, holds nothing but the channel; it may find that
	// several commits have come at once.
	Changed() (revision uint64, next <-chan struct{})
}

// Snapshot is an immutable state of a store at one revision, for concurrent use. Resources it hands out must not be
// changed.
type Snapshot interface {
	Revision() uint64
	// Get returns the resource, or nil when there is none.
	Get(resources.Key) *resources.Resource
	// List yields the resources that q selects, ordered by mesh, namespace and name.
	List(q Query) iter.Seq[*resources.Resource]
}

// Query selects resources of one type. Empty fields select everything.
type Query struct {
	// Type is required.
	Type resources.Type
	Mesh string
	// Namespace, when not nil, selects that namespace, "" being the resources without one.
	Namespace *string
	// Labels must all be carried. The first in alphabetical order is looked up in an index.
	Labels map[string]string
}

// Store is a Reader that can be written to.
type Store interface {
	Reader
	// Apply makes all operations of the batch durable, in order, at one revision, or none of them. It returns once the batch
	// is on disk and visible to readers; nothing of it is visible before. A batch that changes nothing (SameContent)
	// writes nothing and returns a Commit without changes at the current revision.
	// Errors: ErrConflict, ErrNotFound, ErrInvalid, *TooLargeError, what the batch's Check returned, ErrClosed, ErrUnavailable when the
	// disk refused, ctx's error when it ended before the batch was taken up. After any of them nothing was written;
	// only when the process ends right after ErrUnavailable may the next one find the batch in the file after all.
	Apply(ctx context.Context, b Batch) (*Commit, error)
	// Close waits for writes under way, refuses later ones with ErrClosed, and releases the file. Reads go on working. A
	// second Close does nothing and returns what the first did.
	Close() error
}

// Batch is a set of operations that succeed or fail together.
type Batch struct {
	Ops []Op
	// Check, when set, is called under the write lock with the state that the batch applies to, including all earlier
	// batches, and after the conditions of all operations were found to hold. Its error refuses the batch. It must be quick,
	// since all writers wait for it, and must not write. What it saw of earlier batches may still fail to become
	// durable; then this batch fails too.
	Check func(Snapshot) error
	// Cause goes into the Commit, with the present as its time where it has none.
	Cause Cause
	// Synced: the resources are stored elsewhere, by who decides about them, and may be over MaxResourceBytes if they were stored
	// before there was the limit.
	Synced bool
}

// Op is one Put or one Delete.
type Op struct {
	// Put is stored under its Key. The store takes a copy (Clone) and sets Revision and the times on it; CreationTime is
	// kept where Put has one (copies keep their original's), otherwise it is the one of the resource that is replaced,
	// otherwise now. Times are in UTC. A Version that does not change with the content is dropped.
	Put *resources.Resource
	// Delete removes the resource under this key; used when Put is nil. Absent resources are ErrNotFound only with a
	// Revision to match, and otherwise nothing to do.
	Delete resources.Key
	// If is the condition under which the operation applies. It is judged on what the operations before it in the batch
	// leave; it holds for equal content too, which would not be written.
	If Condition
}

// Condition guards an operation against writers in between.
type Condition struct {
	kind     conditionKind
	revision uint64
}

type conditionKind uint8

const (
	always conditionKind = iota
	absent
	atRevision
)

// Always is the zero Condition: no condition.
func Always() Condition { return Condition{} }

// IfAbsent refuses with ErrConflict when the key exists.
func IfAbsent() Condition { return Condition{kind: absent} }

// IfRevision refuses with ErrConflict unless the resource is at this revision.
func IfRevision(r uint64) Condition { return Condition{kind: atRevision, revision: r} }

// Commit is one applied batch.
type Commit struct {
	Revision uint64
	// Changes are those that changed something, at most one for each key, with the net effect of the batch, in the order
	// in which it first changed the keys.
	Changes []Change
	// Cause is the batch's. Its time is zero where the store does not know it.
	Cause Cause
}

// Change is what happened to one key: Old is nil for a creation, New for a deletion.
type Change struct {
	Old, New *resources.Resource
}

// Key is the key that changed.
func (c Change) Key() resources.Key {
	if c.New != nil {
		return c.New.Key
	}
	return c.Old.Key
}
