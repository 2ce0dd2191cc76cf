package bolt

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// commit applies a group: in memory where no reader sees it, then on disk, then for all to see.
//
// When the disk refuses, every writer of the group gets ErrUnavailable, refused ones too: a batch may have been refused
// because of another one of the group, which then did not happen. The same holds while the file is not in its place any more,
// also for batches that change nothing: what the view has would not be there after a restart.
func (s *Store) commit(group []*store.Request) {
	s.metrics.Group(len(group))
	if err := s.file.inPlace(); err != nil {
		fail(group, s.unavailable(err))
		return
	}
	if err := s.settle(); err != nil {
		fail(group, err)
		return
	}
	t := s.Begin()
	defer t.Abort()
	answers := t.ApplyAll(group)
	if commits := t.Commits(); len(commits) > 0 {
		changes := store.Net(commits)
		revision := commits[len(commits)-1].Revision
		if err := s.file.write(revision, changes); err != nil {
			t.Abort()
			s.refused.Store(&err)
			err = s.unavailable(err)
			s.doubtful(revision, changes)
			// Tried at once, for a failure that is over; otherwise the next group tries again.
			_ = s.settle()
			fail(group, err)
			return
		}
		// Once more: a file that went while it was written is not what the next start opens.
		if err := s.file.inPlace(); err != nil {
			t.Abort()
			s.doubtful(revision, changes)
			fail(group, fmt.Errorf("%w: %w", store.ErrUncertain, s.unavailable(err)))
			return
		}
		t.Commit()
	}
	answers.Send()
}

func fail(group []*store.Request, err error) {
	for _, r := range group {
		r.Answer(nil, err)
	}
}

func (s *Store) unavailable(err error) error {
	s.metrics.Failed()
	s.log.Error("store: write failed", "path", s.file.path, "error", err)
	return fmt.Errorf("%s: %w (%w)", s.file.path, store.ErrUnavailable, err)
}

// doubt is what a failed write may have left in the file.
//
// bbolt ends a transaction by writing a meta page that points to the new pages, and syncing it. When that last sync fails,
// the write has failed for its writers, but the meta page is in the file as far as this process can see: the next
// transaction would build on it and make the failed write durable after all. So before anything else is written, the
// keys that the failed write touched are written again as the view has them. That is right whether the failed write is in
// the file or not. It is a transaction of its own, not part of the next group's: if it fails in turn, the doubt stays
// as it is, and no further key comes in doubt, however long the disk is away and whatever writers try.
//
// Revisions of a failed write are not given out again (store.Transaction), and settling stores the highest of them,
// so a revision never stands for two contents, also when the process ends in between and the failed write is what the
// next one loads. That last case cannot be excluded: a process that is killed with a doubt open may come back with
// the write that it had reported as failed, whole, at the revision that it would have had.
type doubt struct {
	revision uint64
	keys     []resources.Key
}

func (s *Store) doubtful(revision uint64, changes map[resources.Key]*resources.Resource) {
	s.doubt.revision = revision
	for key := range changes {
		s.doubt.keys = append(s.doubt.keys, key)
	}
}

// settle ends the doubt, if there is one.
func (s *Store) settle() error {
	if len(s.doubt.keys) == 0 {
		s.refused.Store(nil)
		return nil
	}
	view := s.Snapshot()
	restored := make(map[resources.Key]*resources.Resource, len(s.doubt.keys))
	for _, key := range s.doubt.keys {
		restored[key] = view.Get(key)
	}
	if err := s.file.write(s.doubt.revision, restored); err != nil {
		s.refused.Store(&err)
		return s.unavailable(fmt.Errorf("undo a failed write: %w", err))
	}
	s.refused.Store(nil)
	s.log.Info("store: undid a failed write", "path", s.file.path, "revision", s.doubt.revision)
	s.doubt = doubt{}
	return nil
}
