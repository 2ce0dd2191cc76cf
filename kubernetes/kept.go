package kubernetes

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// keptInterval is how often a kept object is checked although nothing is heard of it.
const keptInterval = time.Minute

// kept is one object of another author or of this server, parts of which this server keeps as they should be. It is an
// apiserver.Sink.
type kept struct {
	bridge *Bridge
	kind   apiserver.Kind
	id     apiserver.Name
	// what names it in the log, and absent is what it means that there is none; empty if it is made then.
	what, absent string
	// tend makes the object what it should be. It is nil if there is none.
	tend func(context.Context, *apiserver.Object) error
	news chan struct{}

	mu     sync.Mutex
	listed bool              // guarded by mu, like everything below
	latest *apiserver.Object // nil if there is none
	failed error
}

// keep follows the object and tends it until ctx ends.
func (k *kept) keep(ctx context.Context) error {
	k.news = make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		k.bridge.Client.FollowIn(ctx, k.kind, k.id.Namespace, "metadata.name="+k.id.Name, k)
		return nil
	})
	group.Go(func() error { return k.run(ctx) })
	return group.Wait()
}

func (k *kept) run(ctx context.Context) error {
	ticker := time.NewTicker(keptInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.news:
		case <-ticker.C:
		}
		k.mu.Lock()
		o, listed := k.latest, k.listed
		k.mu.Unlock()
		if !listed {
			continue // it may be there
		}
		if err := k.tend(ctx, o); err != nil && ctx.Err() == nil && !apiserver.IsConflict(err) {
			k.bridge.Log.Error("cannot maintain "+k.what, "kind", k.kind.Name, "name", k.id.String(), "error", err)
		}
	}
}

func (k *kept) set(o *apiserver.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest, k.listed = o, true
	wake(k.news)
}

// Replace implements apiserver.Sink.
func (k *kept) Replace(all []*apiserver.Object) {
	k.Resumed()
	if len(all) > 0 {
		k.set(all[0])
		return
	}
	k.set(nil)
	if k.absent != "" {
		k.bridge.Log.Warn(k.what+" not found: "+k.absent, "kind", k.kind.Name, "name", k.id.String())
	}
}

// Changed implements apiserver.Sink.
func (k *kept) Changed(o *apiserver.Object) { k.set(o) }

// Deleted implements apiserver.Sink.
func (k *kept) Deleted(*apiserver.Object) { k.set(nil) }

// Failed implements apiserver.Sink.
func (k *kept) Failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed == nil {
		k.bridge.Log.Warn(k.what+" cannot be followed", "kind", k.kind.Name, "name", k.id.String(), "error", err)
	}
	k.failed = err
}

// Resumed implements apiserver.Sink.
func (k *kept) Resumed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = nil
}
