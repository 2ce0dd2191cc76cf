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
	// Path is the file. It is made, with its directory, where there is none.
	Path string
	// View configures the view in memory: the changelog's window and the clock.
	View store.ReplicaConfig
	// Program is the version of the program that opens the file; an older one that cannot read it names it. Empty notes nothing.
	Program string
	// LockTimeout is how long to wait for another process to close the file; default 1 s.
	LockTimeout time.Duration
	// QueueSize is how many batches may wait for the committer; more writers wait in Apply. Default 1,024.
	QueueSize int
	// Registerer takes the store's metrics, until Close; nil means none.
	Registerer prometheus.Registerer
	// Log gets failures to write; default slog.Default().
	Log *slog.Logger
	// Commit ends a write transaction. It is (*bbolt.Tx).Commit except in tests of what happens when a disk fails.
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
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Commit == nil {
		c.Commit = (*bbolt.Tx).Commit
	}
	return nil
}

// Store is a durable store.Store in one bbolt file. One process can have a file open.
type Store struct {
	*store.Replica
	file    *file
	log     *slog.Logger
	metrics *store.Metrics

	queue    *store.Queue
	closing  sync.Once
	closeErr error

	// doubt is the committer's own.
	doubt doubt
	// refused is why the disk took no write, nil once it takes them again; trying ends when nobody tries whether it does.
	refused atomic.Pointer[error]
	trial   sync.Mutex
	trying  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open loads the file into memory and starts the committer, which runs until Close. ctx bounds the loading. Errors:
// ErrInUse, ErrDamaged (with what is wrong and what to do), ErrFormat, ctx's, and the operating system's.
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
		Replica: store.NewReplica(config.View),
		file:    f,
		log:     config.Log,
		queue:   store.NewQueue(config.QueueSize),
	}
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), f.close())
	}
	if s.metrics, err = store.NewMetrics(config.Registerer, s.Replica); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), f.close())
	}
	if config.Program != "" {
		if err := f.sign(config.Program); err != nil { // a disk that takes no writes may take some later
			s.log.Warn("store: the version of this program was not noted", "path", config.Path, "error", err)
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

// Apply implements store.Store. Waiting in the queue ends with ctx; a batch that was taken up is waited for.
func (s *Store) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	begin := time.Now()
	commit, err := s.queue.Apply(ctx, b)
	s.metrics.Applied(time.Since(begin), err)
	return commit, err
}

// Close implements store.Store. Batches that the committer has taken up are finished, others get store.ErrClosed. It
// fails when the file may still hold a write that was reported as failed.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.Stop()
		s.trial.Lock() // nobody begins to try any more
		s.trying.Wait()
		s.metrics.Unregister()
		s.closeErr = errors.Join(s.settle(), s.file.close())
	})
	return s.closeErr
}

// Healthy returns nil while the file is in its place and the last write to it went well, and what is wrong otherwise. It returns at
// once. After a write that failed each call has it tried whether the disk takes writes again, so that nobody else has to.
func (s *Store) Healthy() error {
	if err := s.file.inPlace(); err != nil {
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	if err := s.refused.Load(); err != nil {
		s.tryAgain()
		return fmt.Errorf("%s: %w (the last write failed: %w)", s.file.path, store.ErrUnavailable, *err)
	}
	return nil
}

// tryAgain has the committer settle what a failed write left, unless that is under way, or the store is closed.
func (s *Store) tryAgain() {
	if !s.trial.TryLock() {
		return
	}
	s.trying.Go(func() {
		defer s.trial.Unlock()
		_, _ = s.queue.Apply(context.Background(), store.Batch{}) // ends when the queue does; what it came to is in refused
	})
}
