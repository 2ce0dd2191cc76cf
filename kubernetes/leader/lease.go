package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// The times of a Lease. A waiting replica takes one that has not changed for leaseTime by its own clock. The leader
// stops serving when its last renewal began safeTime ago by its own, which is earlier, however their clocks differ.
type times struct {
	lease, safe, renew, look time.Duration
	// secret limits a request for a Secret.
	secret time.Duration
}

// usual are the times outside of tests.
func usual() times {
	return times{lease: 2500 * time.Millisecond, safe: 2 * time.Second, renew: 500 * time.Millisecond, look: 250 * time.Millisecond,
		secret: 5 * time.Second}
}

// annotationBegun, on the Lease, says that there are Secrets: without them nobody begins anew.
const annotationBegun = "causeway.io/begun"

// lease is this replica's view of the Lease.
type lease struct {
	client *apiserver.Client
	name   apiserver.Name
	// holder is this process: the pod, and a text of its own.
	holder string
	now    func() time.Time
	times  times
	// base is the origin of until.
	base time.Time
	// until is when the lead ends, as nanoseconds since base. It is zero before there is one.
	until atomic.Int64
	// begun is set once there are Secrets.
	begun atomic.Bool

	// mu is held for each request that reads or writes the Lease.
	mu       sync.Mutex
	seen     leaseObject // guarded by mu: what was last read
	observed time.Time   // guarded by mu: when it was first seen so
}

// leaseObject is the part of a Lease that is used. Source: coordination.k8s.io/v1, LeaseSpec.
type leaseObject struct {
	Metadata struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Holder      string `json:"holderIdentity,omitempty"`
		Seconds     int    `json:"leaseDurationSeconds,omitempty"`
		Acquired    string `json:"acquireTime,omitempty"`
		Renewed     string `json:"renewTime,omitempty"`
		Transitions int    `json:"leaseTransitions"`
	} `json:"spec"`
}

func newLease(c *Config, client *apiserver.Client) *lease {
	return &lease{client: client, name: apiserver.Name{Namespace: c.Namespace, Name: c.Lease},
		holder: c.Pod + "/" + uuid.NewString()[:8], now: c.Now, times: c.times, base: time.Now()}
}

// read reads the Lease. A missing one has no version.
func (l *lease) read(ctx context.Context) error {
	var now leaseObject
	o, err := l.client.Get(ctx, leases, l.name)
	switch {
	case apiserver.IsNotFound(err):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(o.Raw, &now); err != nil {
			return fmt.Errorf("the Lease %s: %w", l.name, err)
		}
	}
	if l.observed.IsZero() || now.Metadata.ResourceVersion != l.seen.Metadata.ResourceVersion {
		l.observed = time.Now()
	}
	l.seen = now
	l.begun.Store(l.begun.Load() || now.Metadata.Annotations[annotationBegun] != "")
	return nil
}

// free returns how long to wait until the lead may be taken.
func (l *lease) free() time.Duration {
	if l.seen.Spec.Holder == "" {
		return 0
	}
	return max(0, l.times.lease-l.unchanged())
}

// unchanged returns for how long the Lease has been as it is, or has been missing, by this replica's clock.
func (l *lease) unchanged() time.Duration { return time.Since(l.observed) }

// write stores the Lease with a holder, over the version that was read. ok is false if another was faster.
func (l *lease) write(ctx context.Context, holder string) (ok bool, err error) {
	began := time.Now()
	next := l.seen
	next.Metadata.Name, next.Metadata.Namespace = l.name.Name, l.name.Namespace
	stamp := l.now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	if next.Spec.Holder != holder && holder != "" {
		next.Spec.Acquired = stamp
		next.Spec.Transitions++
	}
	next.Spec.Holder, next.Spec.Renewed, next.Spec.Seconds = holder, stamp, int(math.Ceil(l.times.lease.Seconds()))
	if l.begun.Load() {
		next.Metadata.Annotations = map[string]string{annotationBegun: "true"}
	}
	document, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		leaseObject
	}{leases.APIVersion(), leases.Name, next})
	if err != nil {
		return false, err
	}
	var o *apiserver.Object
	made := l.seen.Metadata.ResourceVersion == ""
	if made {
		o, err = l.client.Create(ctx, leases, l.name.Namespace, document)
	} else {
		o, err = l.client.Replace(ctx, leases, l.name, document)
	}
	if apiserver.IsConflict(err) || apiserver.IsExists(err) || apiserver.IsNotFound(err) && !made {
		return false, nil
	}
	if err != nil { // also: there is no such namespace
		return false, fmt.Errorf("the Lease %s: %w", l.name, err)
	}
	if err := json.Unmarshal(o.Raw, &l.seen); err != nil {
		return false, fmt.Errorf("the Lease %s: %w", l.name, err)
	}
	l.observed = time.Now()
	if holder == l.holder {
		l.until.Store(int64(began.Sub(l.base) + l.times.safe))
	}
	return true, nil
}

// left returns how much longer this replica leads, by the monotonic clock.
func (l *lease) left() time.Duration {
	return time.Duration(l.until.Load()) - time.Since(l.base)
}

// held returns ErrLost unless this replica leads. It is quick.
func (l *lease) held() error {
	if l.left() <= 0 {
		return ErrLost
	}
	return nil
}

// renew extends the lead until ctx ends, which returns nil, or the lead is lost.
func (l *lease) renew(ctx context.Context, failed func(error)) error {
	pause := time.NewTimer(l.times.renew)
	defer pause.Stop()
	for {
		end := time.NewTimer(l.left())
		select {
		case <-ctx.Done():
			end.Stop()
			return nil
		case <-end.C:
			return ErrLost
		case <-pause.C:
			end.Stop()
		}
		if l.held() != nil {
			return ErrLost
		}
		began := time.Now()
		try, cancel := context.WithTimeout(ctx, max(l.left(), time.Millisecond))
		err := l.extend(try)
		cancel()
		if errors.Is(err, ErrLost) {
			return err
		}
		wait := l.times.renew
		if err != nil && ctx.Err() == nil {
			failed(err)
			wait = l.times.look
		}
		pause.Reset(wait - time.Since(began)) // at once after a slow answer
	}
}

// extend renews the Lease once. After a failed attempt the version may be another, although the holder is not.
func (l *lease) extend(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok, err := l.write(ctx, l.holder)
	if ok || err != nil {
		return err
	}
	if err := l.read(ctx); err != nil {
		return err
	}
	if l.seen.Spec.Holder != l.holder && l.seen.Metadata.ResourceVersion != "" {
		return fmt.Errorf("%w: %s does", ErrLost, l.seen.Spec.Holder)
	}
	if ok, err = l.write(ctx, l.holder); err == nil && !ok {
		err = errors.New("the Lease changes while it is renewed")
	}
	return err
}

// giveBack ends the lead, so that another replica leads at once. The last renewal may have been stored without an
// answer, so the version may be another.
func (l *lease) giveBack(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(0)
	for {
		if err := l.read(ctx); err != nil {
			return err
		}
		if l.seen.Spec.Holder != l.holder {
			return nil
		}
		if ok, err := l.write(ctx, ""); ok || err != nil {
			return err
		}
	}
}
