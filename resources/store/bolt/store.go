package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Config configures Open. Only Path is required.
type Config struct {
	// Path is the file. Open creates it and its directory if needed.
	Path string
	// View configures the view in memory: the changelog's window and the clock.
	View store.ViewConfig
	// Program is the version of the program that opens the file. An older program that cannot read the file names it.
	// Empty records nothing.
	Program string
	// LockTimeout is how long to wait for another process to close the file; default 1 s.
	LockTimeout time.Duration
	// QueueSize is how many batches may wait for the committer; more writers wait in Apply. Default 1,024.
	QueueSize int
	// Held, if set, is called once before each group of batches is written. Its error refuses them all with
	// store.ErrUnavailable. It must be quick.
	Held func() error
	// Keep, if set, is called with the changes of each group of batches before they are written, and before anybody sees
	// them. Its error refuses the group with store.ErrUnavailable. A nil resource is a deletion. After a write that failed
	// it is called with what the group had changed, as it was before.
	Keep func(revision uint64, changes map[resources.Key]*resources.Resource) error
	// Registerer receives the store's metrics until Close; nil means none.
	Registerer prometheus.Registerer
	// Log receives write failures; default slog.Default().
	Log *slog.Logger
	// Commit ends a write transaction. It is (*bbolt.Tx).Commit, except in tests of disk failures.
	Commit func(*bbolt.Tx) error
}

func (c *Config) fillDefaults() error {
	if c.Path == "" {
		return errors.New("path of the store's file is empty: set it")
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = time.Second
	}
	if c.QueueSize <= 0 {
		c.QueueSize = 1024
	}
	if c.Held == nil {
		c.Held = func() error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Commit == nil {
		c.Commit = (*bbolt.Tx).Commit
	}
	return nil
}

// Store is a durable store.Store in one bbolt file. Only one process can have a file open.
type Store struct {
	*store.View
	file    *file
	held    func() error
	keep    func(uint64, map[resources.Key]*resources.Resource) error
	log     *slog.Logger
	metrics *store.Metrics

	queue    *store.Queue
	closing  sync.Once
	closeErr error

	// doubt belongs to the committer alone.
	doubt doubt
	// refused is why the disk refused a write, or nil once it accepts them again. trying ends when no retry is running.
	refused atomic.Pointer[error]
	trial   sync.Mutex
	trying  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open loads the file into memory and starts the committer, which runs until Close. ctx bounds the loading. Errors:
// ErrInUse, ErrDamaged (with the damage and the remedy), ErrFormat, ctx's, and the operating system's.
func Open(ctx context.Context, config Config) (*Store, error) {
	if err := config.fillDefaults(); err != nil {
		return nil, err
	}
	f, err := openFile(config.Path, config.LockTimeout)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	f.commit = config.Commit
	if err := f.migrate(migrations()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), f.close())
	}
	s := &Store{
		View:  store.NewView(config.View),
		file:  f,
		held:  config.Held,
		keep:  config.Keep,
		log:   config.Log,
		queue: store.NewQueue(config.QueueSize),
	}
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), f.close())
	}
	if f.lostMeta {
		s.log.Error("store: one of the two pages that lead to the data is damaged: the last write may be missing; compare the audit log",
			"path", config.Path, "revision", s.Snapshot().Revision())
	}
	if s.metrics, err = store.NewMetrics(config.Registerer, s.View); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), f.close())
	}
	if config.Program != "" {
		if err := f.sign(config.Program); err != nil { // a disk that refuses writes now may accept them later
			s.log.Warn("store: cannot record the version of this program", "path", config.Path, "error", err)
		}
	}
	go s.queue.Serve(s.commit)
	return s, nil
}

func (s *Store) load(ctx context.Context) error {
	return s.Load(func(put func(*resources.Resource) error) (uint64, error) {
		return s.file.read(func(r *resources.Resource) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return put(r)
		})
	})
}

// Apply implements store.Store. The end of ctx ends the wait in the queue, but not the wait for a batch that the
// committer has accepted.
func (s *Store) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	begin := time.Now()
	commit, err := s.queue.Apply(ctx, b)
	s.metrics.Applied(time.Since(begin), err)
	return commit, err
}

// Close implements store.Store. Batches that the committer has accepted complete; others get store.ErrClosed. It fails
// if the file may still hold a write that was reported as failed.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.Stop()
		s.trial.Lock() // no further retry starts
		s.trying.Wait()
		s.metrics.Unregister()
		s.closeErr = errors.Join(s.settle(), s.file.close())
	})
	return s.closeErr
}

// Healthy returns nil while the file is in place, the last write succeeded and none hangs, or else the problem. It
// returns at once. After a failed write, each call starts a retry in the background, so that no writer has to find out
// whether the disk accepts writes again.
func (s *Store) Healthy() error {
	if err := s.InPlace(); err != nil {
		return err
	}
	if err := s.file.busy.Check(); err != nil {
		return fmt.Errorf("%s: %w (%w)", s.file.path, store.ErrUnavailable, err)
	}
	if err := s.refused.Load(); err != nil {
		s.tryAgain()
		return fmt.Errorf("%s: %w (the last write failed: %w)", s.file.path, store.ErrUnavailable, *err)
	}
	return nil
}

// InPlace returns nil while the file is in place, even if writes to it fail. It returns at once.
func (s *Store) InPlace() error {
	if err := s.file.inPlace(); err != nil {
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	return nil
}

// tryAgain makes the committer settle a failed write, unless it is already doing so or the store is closed.
func (s *Store) tryAgain() {
	if !s.trial.TryLock() {
		return
	}
	s.trying.Go(func() {
		defer s.trial.Unlock()
		_, _ = s.queue.Apply(context.Background(), store.Batch{}) // ends when the queue does; the result is in refused
	})
}
