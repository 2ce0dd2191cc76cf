package bolt

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// commit applies a group: first in memory, hidden from readers, then on disk, then visibly.
//
// If the disk refuses, every writer of the group gets ErrUnavailable, even one whose batch was refused: the refusal may
// be due to another batch of the group, which then did not happen. The same applies if the file is no longer in its
// place, even to batches that change nothing, because the contents of the view would not survive a restart.
func (s *Store) commit(group []*store.Request) {
	s.metrics.Group(len(group))
	if err := s.held(); err != nil {
		fail(group, fmt.Errorf("%w (%w)", store.ErrUnavailable, err))
		return
	}
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
		if err := s.keepGroup(revision, changes); err != nil {
			t.Abort()
			fail(group, fmt.Errorf("%w (%w)", store.ErrUnavailable, err))
			return
		}
		if err := s.file.write(revision, changes); err != nil {
			t.Abort()
			s.refused.Store(&err)
			err = s.unavailable(err)
			s.doubtful(revision, changes)
			// Retry at once, in case the failure is over; otherwise the next group retries.
			_ = s.settle()
			fail(group, err)
			return
		}
		// Check again: if the file moved during the write, the next start does not open this one.
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

// keepGroup calls Config.Keep.
func (s *Store) keepGroup(revision uint64, changes map[resources.Key]*resources.Resource) error {
	if s.keep == nil {
		return nil
	}
	return s.keep(revision, changes)
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

// doubt records what a failed write may have left in the file.
//
// bbolt ends a transaction by writing a meta page that points to the new pages, and syncing it. If that last sync
// fails, the write has failed for its writers, but this process still sees the meta page in the file: the next
// transaction would build on it and make the failed write durable after all. So before any other write, the keys that
// the failed write touched are kept and written again with the contents of the view. That is correct whether the failed
// write is in the file or not. It is a transaction of its own, not part of the next group's: if it fails too, the doubt
// stays the same and no further key is added, however long the disk is away and whatever writers try.
//
// Revisions of a failed write are not assigned again (store.Transaction), and settling stores the highest of them. So a
// revision never stands for two contents, even if the process ends in between and the next one loads the failed write.
// That last case cannot be excluded: a process that is killed with a doubt open may restart with the whole write that
// it reported as failed, at the revision that it would have had.
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

// settle resolves the doubt, if there is one.
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
	err := s.keepGroup(s.doubt.revision, restored)
	if err == nil {
		err = s.file.write(s.doubt.revision, restored)
	}
	if err != nil {
		s.refused.Store(&err)
		return s.unavailable(fmt.Errorf("undo a failed write: %w", err))
	}
	s.refused.Store(nil)
	s.log.Info("store: undid a failed write", "path", s.file.path, "revision", s.doubt.revision)
	s.doubt = doubt{}
	return nil
}
