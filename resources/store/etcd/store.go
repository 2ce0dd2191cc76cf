package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Config configures Open. Endpoints and Prefix are required.
type Config struct {
	// Endpoints are the members' client URLs, http:// or https://.
	Endpoints []string
	// Prefix is where the store's keys are. Stores can share a cluster if no prefix is the beginning of another.
	Prefix string
	// TLS secures connections to https endpoints.
	TLS *tls.Config
	// Username and Password log in if the cluster requires it.
	Username, Password string
	// Program is the version of this program. An older program that cannot read the layout names it. Empty records
	// nothing.
	Program string
	// Unfinished opens contents of which a Replace has written only some parts, so that it can be repeated. Without it
	// they are refused with ErrUnfinished.
	Unfinished bool
	// Backup keeps the contents in an older format before they are migrated. Without it an older format is refused.
	Backup func(format int, revision uint64, rs []*resources.Resource) error
	// View configures the view in memory: the changelog's window and the clock.
	View store.ViewConfig
	// Timeout bounds one request to etcd and how long a write is retried. Default 3 s.
	Timeout time.Duration
	// MaxOps and MaxBytes bound one transaction; bigger batches are cut. Defaults 100 and 1 MiB: etcd's own defaults
	// are 128 operations and 1.5 MiB.
	MaxOps, MaxBytes int
	// WriterLease is how long a server that died while it wrote a cut batch blocks other writers, in whole seconds.
	// Default 5 s.
	WriterLease time.Duration
	// QueueSize is how many batches may wait for the committer; more writers wait in Apply. Default 1,024.
	QueueSize int
	// Registerer receives the store's metrics until Close; nil means none.
	Registerer prometheus.Registerer
	// Log receives lost and restored connections; default slog.Default().
	Log *slog.Logger
}

func (c *Config) fillDefaults() error {
	if len(c.Endpoints) == 0 {
		return errors.New("no etcd endpoints: name at least one, such as https://10.0.0.1:2379")
	}
	c.Prefix = strings.TrimSuffix(c.Prefix, "/")
	if !strings.HasPrefix(c.Prefix, "/") {
		return fmt.Errorf("prefix %q of the store's keys: begin it with a slash and a name, such as /causeway", c.Prefix)
	}
	setDefault(&c.Timeout, 3*time.Second)
	setDefault(&c.MaxOps, 100)
	setDefault(&c.MaxBytes, 1<<20)
	setDefault(&c.WriterLease, 5*time.Second)
	setDefault(&c.QueueSize, 1024)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Store is a store.Store whose resources are in etcd. Any number of servers may have it open.
type Store struct {
	*store.View
	config  Config
	client  *clientv3.Client
	keys    keys
	formats []entryReader
	writer  string // this server, in head and writer keys
	log     *slog.Logger
	metrics *store.Metrics

	queue     *store.Queue
	following sync.WaitGroup
	// stopFollowing ends the watch and everything that waits for it.
	stopFollowing context.CancelFunc
	closing       sync.Once
	closeErr      error

	place  position
	health health
	// maxBytes bounds a transaction: MaxBytes, or less once etcd has refused that size. taken is the size of the
	// biggest transaction that etcd has accepted. Both belong to the committer.
	maxBytes, taken int
}

var _ store.Store = (*Store)(nil)

// Open loads the keys below the prefix and follows them until Close. It first migrates an older format; only one of
// several servers does so. ctx bounds the loading. Errors: ErrFormat, ErrOldFormat, ErrUnfinished, Backup's,
// store.ErrUnavailable if no member answers, which may be temporary, ErrRefused, store.ErrChecksum, ctx's.
func Open(ctx context.Context, config Config) (*Store, error) {
	return openWith(ctx, config, formats())
}

func openWith(ctx context.Context, config Config, formats []entryReader) (*Store, error) {
	if err := config.fillDefaults(); err != nil {
		return nil, err
	}
	client, err := connect(&config)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", config.unreachable(ctx, err))
	}
	s := &Store{
		View:   store.NewView(config.View),
		config: config, client: client, keys: keys{config.Prefix, len(formats)}, formats: formats,
		writer: uuid.NewString(), log: config.Log,
		queue: store.NewQueue(config.QueueSize),
	}
	s.place.moved, s.maxBytes = make(chan struct{}), config.MaxBytes
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), client.Close())
	}
	if s.metrics, err = store.NewMetrics(config.Registerer, s.View); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), client.Close())
	}
	following, stop := context.WithCancel(context.Background())
	s.stopFollowing = stop
	s.following.Go(func() { s.follow(following) })
	s.following.Go(func() { s.watchHealth(following) })
	go s.queue.Serve(s.commit)
	return s, nil
}

func connect(c *Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, Username: c.Username, Password: c.Password,
		DialTimeout: c.Timeout, DialKeepAliveTime: 3 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		PermitWithoutStream: true,
		// The store retries failed requests itself, where it knows what that means.
		MaxUnaryRetries: 2,
		Logger:          zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 2 * time.Second},
			MinConnectTimeout: time.Second,
		})},
	})
}

// Apply implements store.Store. While no member answers it fails at once with store.ErrUnavailable. ErrUncertain beside
// it reports that the connection was lost while the batch was being written.
func (s *Store) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	begin := time.Now()
	commit, err := s.queue.Apply(ctx, b)
	s.metrics.Applied(time.Since(begin), err)
	return commit, err
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.Stop()
		s.stopFollowing()
		s.following.Wait()
		s.metrics.Unregister()
		s.closeErr = s.client.Close()
	})
	return s.closeErr
}
