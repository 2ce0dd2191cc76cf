package leader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
)

// Term is one lead of this replica. A nil Term is that of a server without replicas.
type Term struct {
	cfg    Config
	client *apiserver.Client
	lease  *lease
	vault  *vault
	// number is that of the Lease's transitions, began when the lead began.
	number int
	began  time.Time
	stop   context.CancelCauseFunc
	ctx    context.Context
	done   sync.WaitGroup

	mu sync.Mutex // guards everything below, and the writes of the core and of the log
	// log holds the changes that the shards may lack, by key. trimmed is closed and made again when it shrinks.
	log     map[resources.Key]entry
	trimmed chan struct{}
	files   map[string][]byte
	// complete is content.Complete, started is set by Start, fresh means that the folder was empty.
	complete, started, fresh bool
	revision                 uint64
	// versions are those of the Secrets, by suffix.
	versions map[string]string
	// sums are those of the plain contents that are stored.
	sums map[string][32]byte

	telling sync.Mutex
	// failing, guarded by telling, is why something could not be stored at the last attempt.
	failing error
	// peers, guarded by telling, are the replicas' pods as they were last seen; unseen is why they are not known.
	peers  []Peer
	unseen error
}

// Context returns a context that ends with ctx, or with the lead. The cause is ErrLost then.
func (t *Term) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Held returns ErrLost unless this replica leads. It is quick.
func (t *Term) Held() error {
	if t == nil {
		return nil
	}
	return t.lease.held()
}

// Fence makes the connections of a listener, which is of server.Listen, send nothing after the lead.
func (t *Term) Fence(l net.Listener) {
	if t != nil {
		server.Fence(l, t.Held)
	}
}

// Err returns err, or why the lead ended if it did.
func (t *Term) Err(err error) error {
	if t == nil || t.ctx.Err() == nil {
		return err
	}
	return context.Cause(t.ctx)
}

// Keeper returns Keep, or nil for a server without replicas, whose store keeps nothing for others.
func (t *Term) Keeper() func(uint64, map[resources.Key]*resources.Resource) error {
	if t == nil {
		return nil
	}
	return t.Keep
}

// Keep stores the changes of a group of batches, before the group is written to the file. Nobody has seen them yet.
func (t *Term) Keep(revision uint64, changes map[resources.Key]*resources.Resource) error {
	if err := t.Held(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started {
		return nil // Start stores them, before anybody is answered
	}
	added := make(map[resources.Key]entry, len(changes))
	for key, r := range changes {
		e := entry{Key: store.EncodeKey(key)}
		if r != nil {
			var err error
			if e, err = encoded(r); err != nil {
				return err
			}
		}
		e.Revision = revision
		added[key] = e
	}
	for {
		before, at := t.log, t.revision
		t.log, t.revision = maps.Clone(before), revision
		maps.Copy(t.log, added)
		err := t.putLogLocked(t.ctx)
		if err == nil {
			return nil
		}
		t.log, t.revision = before, at
		if !errors.Is(err, errFull) || len(before) == 0 {
			return fmt.Errorf("the Secret that the replicas share: %w", err)
		}
		if err := t.awaitTrimLocked(); err != nil {
			return err
		}
	}
}

// awaitTrimLocked waits until the shards have what fills the log.
func (t *Term) awaitTrimLocked() error {
	trimmed := t.trimmed
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-trimmed:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-time.After(trimTime):
		return fmt.Errorf("the Secrets that the replicas share are not written fast enough: %w", errFull)
	}
}

// trimTime is how long a write waits for room in the log.
const trimTime = 10 * time.Second

// trim drops from the log what the shards have.
func (t *Term) trim(revision uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.log, func(_ resources.Key, e entry) bool { return e.Revision <= revision })
	close(t.trimmed)
	t.trimmed = make(chan struct{})
}

// KeepFiles stores the small files of the data folder. It is called when one of them must not be lost. Before Start, a
// folder that has a store stays as it is: another replica must not begin on a part of it.
func (t *Term) KeepFiles() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started && !t.fresh && !t.complete {
		return nil
	}
	return t.keepFilesLocked(t.ctx)
}

func (t *Term) keepFilesLocked(ctx context.Context) error {
	files, err := readFiles(t.cfg.DataDir, t.cfg.StoreFile)
	if err != nil {
		return err
	}
	if t.files != nil && maps.EqualFunc(files, t.files, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	before := t.files
	t.files = files
	if err := t.putCoreLocked(ctx); err != nil {
		t.files = before
		return fmt.Errorf("the Secret that the replicas share: %w", err)
	}
	return nil
}

// Start stores everything, and makes this replica the one that the Services lead to. Nothing must be served before, and
// nobody writes the store meanwhile.
func (t *Term) Start(ctx context.Context, from store.Reader) error {
	if t == nil {
		return nil
	}
	now := from.Snapshot()
	if err := t.flush(ctx, now, dirty{shards: all().shards, holdings: true}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mark(); err != nil {
		return err
	}
	var err error
	if t.files, err = readFiles(t.cfg.DataDir, t.cfg.StoreFile); err != nil {
		return err
	}
	t.log, t.revision, t.complete = map[resources.Key]entry{}, now.Revision(), true
	if err := errors.Join(t.putLogLocked(ctx), t.putCoreLocked(ctx)); err != nil {
		return err
	}
	t.started = true
	return t.show(ctx)
}

// Describe implements prometheus.Collector.
func (t *Term) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{keptDesc, leadsDesc, readyDesc} {
		out <- d
	}
}

var (
	keptDesc = prometheus.NewDesc("causeway_replica_stored",
		"1 while everything that replicas share is stored for them, 0 while something could not be.", nil, nil)
	leadsDesc = prometheus.NewDesc("causeway_replica_leads",
		"1 for the pod of the replica that leads, 0 for those that wait.", []string{"pod"}, nil)
	readyDesc = prometheus.NewDesc("causeway_replica_ready",
		"1 for a replica whose pod is ready, so that it can lead, as of 15 seconds ago.", []string{"pod"}, nil)
)

// Collect implements prometheus.Collector.
func (t *Term) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, is bool, labels ...string) {
		value := 0.0
		if is {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(keptDesc, t.Stored() == nil)
	peers, _ := t.Peers() // nothing is said while they are not known
	for _, p := range peers {
		gauge(leadsDesc, p.Leads, p.Pod)
		gauge(readyDesc, p.Ready, p.Pod)
	}
}

// Stored returns why the last attempt to store something for the other replicas failed.
func (t *Term) Stored() error {
	t.telling.Lock()
	defer t.telling.Unlock()
	return t.failing
}
