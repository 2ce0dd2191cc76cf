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
	// Prefix is where the store's keys are; stores with different prefixes, none the beginning of another, share a cluster.
	Prefix string
	// TLS secures connections to https endpoints.
	TLS *tls.Config
	// Username and Password log in where the cluster asks for it.
	Username, Password string
	// Program is the version of this program; an older one that cannot read its layout names it. Empty notes nothing.
	Program string
	// Backup keeps what there is, of an older format, before it is brought forward; without it an older format is refused.
	Backup func(format int, revision uint64, rs []*resources.Resource) error
	// View configures the view in memory: the changelog's window and the clock.
	View store.ReplicaConfig
	// Timeout bounds one request to etcd, and how long a write is tried. Default 3 s.
	Timeout time.Duration
	// MaxOps and MaxBytes bound one transaction; bigger batches are cut. Defaults 100 and 1 MiB: etcd takes 128 operations and
	// 1.5 MiB unless it is told otherwise.
	MaxOps, MaxBytes int
	// WriterLease is how long a server that died while it wrote a cut batch keeps others from writing, in whole seconds.
	// Default 5 s.
	WriterLease time.Duration
	// QueueSize is how many batches may wait for the committer; more writers wait in Apply. Default 1,024.
	QueueSize int
	// Registerer takes the store's metrics, until Close; nil means none.
	Registerer prometheus.Registerer
	// Log gets lost and found connections; default slog.Default().
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
	*store.Replica
	config  Config
	client  *clientv3.Client
	keys    keys
	formats []entryReader
	writer  string // this server, in head and writer keys
	log     *slog.Logger
	metrics *store.Metrics

	queue     *store.Queue
	following sync.WaitGroup
	// stopFollowing ends the watch and what waits for it.
	stopFollowing context.CancelFunc
	closing       sync.Once
	closeErr      error

	place  place
	health health
	// maxBytes bounds a transaction: MaxBytes, or less when etcd has refused one of that size. taken is the size of the biggest that it
	// took. Both are the committer's.
	maxBytes, taken int
}

var _ store.Store = (*Store)(nil)

// Open loads what is below the prefix and starts to follow it, until Close. An older format is brought forward first, once, whichever
// of several servers does it. ctx bounds the loading. Errors: ErrFormat, ErrOldFormat, Backup's,
// store.ErrUnavailable when no member answers, which may be different in a moment, ErrRefused, store.ErrChecksum, ctx's.
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
		Replica: store.NewReplica(config.View),
		config:  config, client: client, keys: keys{config.Prefix, len(formats)}, formats: formats, writer: uuid.NewString(), log: config.Log,
		queue: store.NewQueue(config.QueueSize),
	}
	s.place.moved, s.maxBytes = make(chan struct{}), config.MaxBytes
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), client.Close())
	}
	if s.metrics, err = store.NewMetrics(config.Registerer, s.Replica); err != nil {
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
		DialTimeout: c.Timeout, DialKeepAliveTime: 3 * time.Second, DialKeepAliveTimeout: 2 * time.Second, PermitWithoutStream: true,
		// Failed requests are repeated by us, where it is known what that means.
		MaxUnaryRetries: 2,
		Logger:          zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: time.Second,
		})},
	})
}

// Apply implements store.Store. While no member answers it fails at once with store.ErrUnavailable; ErrUncertain beside it
// says that the connection was lost while the batch was on its way.
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
