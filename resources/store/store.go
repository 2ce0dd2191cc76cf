package store

import (
	"context"
	"iter"

	"github.com/causeway-mesh/causeway/resources"
)

// Reader is a view of a store in memory. All methods are safe for concurrent use. They never block on a writer and
// never touch a disk.
type Reader interface {
	// Snapshot returns the current contents of the store. A snapshot never changes and may be kept.
	Snapshot() Snapshot
	// Changes returns the commits after revision since, oldest first, in time proportional to their number. ok is false
	// if the window no longer reaches back to since, or if since is ahead of the store: compare in full then. Revisions
	// have gaps where writes failed. The caller owns the slice. The commits are shared and must not be changed.
	Changes(since uint64) (commits []*Commit, ok bool)
	// Notable is Changes without the commits that have only background changes (ViewConfig.Background). Its window has
	// the same limits and contains only notable commits, so it reaches further back while a server keeps books, as when
	// thousands of zones register. Each commit has all of its changes.
	Notable(since uint64) (commits []*Commit, ok bool)
	// Changed returns the current revision and a channel that the first commit after it closes. All callers share the
	// channel, so any number may wait. A waiting caller holds nothing but the channel, however long it waits, and
	// several commits may have happened when it wakes.
	Changed() (revision uint64, next <-chan struct{})
}

// Snapshot is an immutable state of a store at one revision, safe for concurrent use. Callers must not change the
// resources that it returns.
type Snapshot interface {
	Revision() uint64
	// Get returns the resource, or nil if there is none.
	Get(resources.Key) *resources.Resource
	// List yields the resources that q selects, ordered by mesh, namespace and name.
	List(q Query) iter.Seq[*resources.Resource]
	// Count returns how many resources of a type a mesh has; those without a mesh if it is empty. It takes no walk.
	Count(of resources.Type, mesh string) int
	// Total returns how many resources of a type there are, in time proportional to the meshes that have some.
	Total(of resources.Type) int
}

// Query selects resources of one type. Empty fields select everything.
type Query struct {
	// Type is required.
	Type resources.Type
	Mesh string
	// Namespace, if not nil, selects that namespace. "" selects the resources without one.
	Namespace *string
	// Labels must all be present. The first in alphabetical order is looked up in an index.
	Labels map[string]string
}

// Store is a Reader that can be written to.
type Store interface {
	Reader
	// Apply makes all operations of the batch durable, in order and at one revision, or none of them. It returns once
	// the batch is on disk and visible to readers. No part of the batch is visible before that. A batch that changes
	// nothing (SameContent) writes nothing and returns a Commit without changes at the current revision.
	//
	// Errors: ErrConflict, ErrNotFound, ErrInvalid, *TooLargeError, the error of the batch's Check, ErrClosed,
	// ErrUnavailable if the disk refused, and ctx's error if ctx ended before the committer accepted the batch. After
	// any of them nothing was written, with one exception: if the process ends right after ErrUnavailable, the next
	// process may still find the batch in the file.
	Apply(ctx context.Context, b Batch) (*Commit, error)
	// Close waits for writes in progress, refuses later ones with ErrClosed, and releases the file. Reads continue to
	// work. A second Close does nothing and returns the result of the first.
	Close() error
}

// Batch is a set of operations that succeed or fail together.
type Batch struct {
	Ops []Op
	// Check, if set, is called under the write lock once the conditions of all operations hold, with the state that the
	// batch applies to, including all earlier batches. If it returns an error, the batch is refused. It must be quick,
	// because all writers wait for it, and must not write. If an earlier batch that it saw fails to become durable,
	// this batch fails too.
	Check func(Snapshot) error
	// Cause is copied into the Commit. If it has no time, the store sets the current time.
	Cause Cause
	// Synced marks a batch of resources that another server stores and decides about. They may exceed MaxResourceBytes,
	// because they may have been stored before the limit existed.
	Synced bool
}

// Op is one Put or one Delete.
type Op struct {
	// Put is stored under its Key. The store takes a copy (Clone) and sets its Revision and times. CreationTime is kept
	// if Put has one, because copies keep the time of their original. Otherwise it is that of the replaced resource, or
	// now. Times are in UTC. A Version that does not change with the content is dropped.
	Put *resources.Resource
	// Delete removes the resource under this key; used if Put is nil. An absent resource is ErrNotFound only if the
	// condition names a revision. Otherwise there is nothing to do.
	Delete resources.Key
	// If is the condition under which the operation applies. It is evaluated on the state that the previous operations
	// of the batch leave, even if the content is equal and would not be written.
	If Condition
}

// Condition guards an operation against concurrent writers.
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

// IfAbsent refuses with ErrConflict if the key exists.
func IfAbsent() Condition { return Condition{kind: absent} }

// IfRevision refuses with ErrConflict unless the resource is at this revision.
func IfRevision(r uint64) Condition { return Condition{kind: atRevision, revision: r} }

// Commit is one applied batch.
type Commit struct {
	Revision uint64
	// Changes are the net effect of the batch, at most one for each key, in the order in which the batch first changed
	// the keys. Keys that did not change in the end are omitted.
	Changes []Change
	// Cause is that of the batch. Its time is zero if the store does not know it.
	Cause Cause
}

// Change is the change of one key: Old is nil for a creation, New for a deletion.
type Change struct {
	Old, New *resources.Resource
}

// Key returns the key that changed.
func (c Change) Key() resources.Key {
	if c.New != nil {
		return c.New.Key
	}
	return c.Old.Key
}
