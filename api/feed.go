package api

import (
	"context"
	"errors"
	"slices"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// FeedUser is the caller in the audit log for changes that arrive by Feed.
const FeedUser = access.ReservedPrefix + "kubernetes"

// Feed is a batch of changes that users have already made elsewhere: as objects of a Kubernetes cluster, which
// authorized them by its own rules.
type Feed struct {
	// Puts are written as PUT would. Each may fail on its own.
	Puts []*resources.Resource
	// Deletes are removed as DELETE would, if they still belong to the deleted object.
	Deletes []FeedDelete
}

// FeedDelete is a resource whose object was deleted.
type FeedDelete struct {
	Key resources.Key
	// UID is the object's. A resource of another object stays.
	UID string
}

// FeedResult reports what happened to each part of a Feed.
type FeedResult struct {
	// Refused holds the reason for each resource that was not written or not removed. Errors are those of PUT and DELETE.
	Refused map[resources.Key]error
	// Revision is the store's revision afterwards.
	Revision uint64
}

// Feed stores a batch by the rules of PUT and DELETE. Refused parts do not block the others. After an error, nothing or
// only a part is done, and the caller may retry the same batch.
func (s *Server) Feed(ctx context.Context, f Feed) (*FeedResult, error) {
	out := &FeedResult{Refused: map[resources.Key]error{}}
	puts := s.acceptEach(f.Puts, out)
	apart := slices.IndexFunc(f.Deletes, func(d FeedDelete) bool { return guardedDelete(d.Key.Type) }) >= 0
	first := f.Deletes
	if apart {
		first = slices.DeleteFunc(slices.Clone(f.Deletes), func(d FeedDelete) bool { return guardedDelete(d.Key.Type) })
	}
	if err := s.feedBatch(ctx, puts, first, out); err != nil {
		return nil, err
	}
	for _, d := range f.Deletes {
		if !guardedDelete(d.Key.Type) {
			continue
		}
		if err := s.feedDelete(ctx, d, out); err != nil {
			return nil, err
		}
	}
	out.Revision = s.config.Store.Snapshot().Revision()
	return out, nil
}

// guardedDelete reports whether other resources, or a connection, may prevent the deletion of a resource of the type.
func guardedDelete(t resources.Type) bool { return t == resources.TypeMesh || t == resources.TypeZone }

// acceptEach is accept for documents that are independent of each other.
func (s *Server) acceptEach(docs []*resources.Resource, out *FeedResult) []*resources.Resource {
	state := s.config.Store.Snapshot()
	var accepted []*resources.Resource
	for _, doc := range docs {
		err := s.discovered(state, doc)
		var one []*resources.Resource
		if err == nil {
			one, err = s.accept(state, []*resources.Resource{doc})
		}
		if err != nil {
			out.Refused[doc.Key] = err
			continue
		}
		accepted = append(accepted, one...)
	}
	return accepted
}

// feedBatch applies puts and deletes in one batch. It drops, one after the other, what the store's state refuses.
func (s *Server) feedBatch(ctx context.Context, puts []*resources.Resource, deletes []FeedDelete, out *FeedResult) error {
	for attempt := 0; ; attempt++ {
		ops := s.feedDeletes(deletes)
		if len(puts)+len(ops) == 0 {
			return nil
		}
		err := s.feedOnce(ctx, puts, ops)
		var invalid *resources.DocumentsError
		var large *store.TooLargeError
		switch {
		case errors.As(err, &invalid):
			rest := without(puts, invalid, out)
			if len(rest) == len(puts) {
				return err
			}
			puts = rest
		case errors.As(err, &large):
			if err := s.eachAlone(ctx, puts, out); err != nil {
				return err
			}
			puts = nil
		case errors.Is(err, store.ErrConflict) && attempt < maxStatusRetries:
		default:
			return err
		}
	}
}

// eachAlone stores documents one by one, after one of them was too large.
func (s *Server) eachAlone(ctx context.Context, puts []*resources.Resource, out *FeedResult) error {
	for _, one := range puts {
		err := s.feedOnce(ctx, []*resources.Resource{one}, nil)
		var invalid *resources.DocumentsError
		var large *store.TooLargeError
		switch {
		case errors.As(err, &invalid), errors.As(err, &large):
			out.Refused[one.Key] = err
		case err != nil:
			return err
		}
	}
	return nil
}

// without returns puts without the refused ones, and records the reasons.
func without(puts []*resources.Resource, failed *resources.DocumentsError, out *FeedResult) []*resources.Resource {
	refused := map[int]*resources.InvalidError{}
	for _, one := range failed.Invalid {
		refused[one.Document-1] = one
	}
	var rest []*resources.Resource
	for i, put := range puts {
		one := refused[i]
		if one == nil {
			rest = append(rest, put)
			continue
		}
		one.Document = 0
		out.Refused[put.Key] = one
	}
	return rest
}

// feedDeletes returns the deletions of resources that still belong to the deleted objects.
func (s *Server) feedDeletes(deletes []FeedDelete) []store.Op {
	snapshot := s.config.Store.Snapshot()
	var ops []store.Op
	for _, d := range deletes {
		old := snapshot.Get(d.Key)
		if old == nil || old.Object.UID != d.UID || !s.config.Home.Owns(old) {
			continue
		}
		ops = append(ops, store.Op{Delete: d.Key, If: store.IfRevision(old.Revision)})
	}
	return ops
}

// feedOnce applies one batch.
func (s *Server) feedOnce(ctx context.Context, puts []*resources.Resource, deletes []store.Op) error {
	ctx, asked := s.asFeed(ctx, access.EventWrite)
	batch, err := s.batchOf(ctx, puts)
	if err != nil {
		return err
	}
	batch.Ops = append(batch.Ops, deletes...)
	return s.commitFeed(ctx, asked, batch)
}

// feedDelete deletes one resource whose deletion something may prevent.
func (s *Server) feedDelete(ctx context.Context, d FeedDelete, out *FeedResult) error {
	for attempt := 0; ; attempt++ {
		ops := s.feedDeletes([]FeedDelete{d})
		if len(ops) == 0 {
			return nil
		}
		ctx, asked := s.asFeed(ctx, access.EventDelete)
		initial := deleteOps(s.config.Store.Snapshot(), d.Key)
		batch := store.Batch{Ops: append(initial[:len(initial)-1], ops...), Check: func(state store.Snapshot) error {
			return s.checkDelete(state, descriptorOfType(d.Key.Type), d.Key, nil)
		}}
		err := s.commitFeed(ctx, asked, batch)
		var refused *Error
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused):
			out.Refused[d.Key] = err
			return nil
		case errors.Is(err, store.ErrConflict) && attempt < maxStatusRetries:
		default:
			return err
		}
	}
}

func descriptorOfType(t resources.Type) *resources.Descriptor {
	d, _ := resources.Lookup(t)
	return d
}

// asFeed returns a context in which the feed is the caller.
func (s *Server) asFeed(ctx context.Context, event string) (context.Context, *access.Asked) {
	asked := &access.Asked{Subject: access.Subject{Name: FeedUser, Groups: []string{access.AdminGroup}, Method: access.ByKubernetes}}
	asked.Entry.Event, asked.Entry.Request = event, "objects of the Kubernetes cluster"
	return access.WithAsked(ctx, asked), asked
}

// commitFeed applies a batch between its two lines in the audit log.
func (s *Server) commitFeed(ctx context.Context, asked *access.Asked, batch store.Batch) error {
	if err := s.intendBatch(ctx, batch); err != nil {
		return err
	}
	commit, err := s.config.Store.Apply(ctx, batch)
	noteCommit(ctx, commit)
	if s.config.Guard == nil || s.config.Guard.Audit() == nil {
		return err
	}
	if asked.Entry.Event == "" || err != nil {
		s.config.Guard.Audit().End(asked.Intent)
		return err
	}
	asked.Entry.Mark(asked.Intent)
	asked.Entry.Outcome = access.Done
	// The server logs a failure, and refuses later changes until the audit log can be written.
	_ = s.record(ctx, asked.Subject, asked.Entry)
	return nil
}
