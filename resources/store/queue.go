package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
)

// These limits of a group keep its first writer from waiting for an endless sequence of others.
const (
	maxGroupBatches = 512
	maxGroupOps     = 8192
)

// Queue holds the writers of a durable store until its committer takes all that are waiting as one group. A lone writer
// does not wait for others. Writers that arrive during a write form the next group.
type Queue struct {
	waiting chan *Request
	// stop signals the committer to end; stopped is closed once it has ended.
	stop, stopped chan struct{}
	closing       sync.Once
}

// NewQueue returns a queue that holds up to size batches; further writers wait in Apply. Serve must be called once.
func NewQueue(size int) *Queue {
	return &Queue{waiting: make(chan *Request, size), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// Len returns the number of waiting requests.
func (q *Queue) Len() int { return len(q.waiting) }

// Stopped returns a channel that Stop closes.
func (q *Queue) Stopped() <-chan struct{} { return q.stop }

// Request is a batch on its way through the committer.
type Request struct {
	Batch Batch
	// claimed is set by the first to claim the request, who decides its outcome.
	claimed atomic.Bool
	// done receives the one answer. It is buffered, so the committer never waits.
	done chan answer
}

type answer struct {
	commit *Commit
	err    error
}

// Answer ends the wait of the request's writer. The committer calls it once for each request.
func (r *Request) Answer(c *Commit, err error) { r.done <- answer{c, err} }

// claim reports whether the caller is the first to claim: the committer, to apply the batch, or its writer, to give up.
func (r *Request) claim() bool { return r.claimed.CompareAndSwap(false, true) }

// Apply queues a batch and waits for its answer. The end of ctx ends the wait in the queue, but not the wait for a
// batch that the committer has claimed. Errors: ctx's, ErrClosed, the committer's.
func (q *Queue) Apply(ctx context.Context, b Batch) (*Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &Request{Batch: b, done: make(chan answer, 1)}
	select {
	case <-q.stop:
		return nil, ErrClosed
	default:
	}
	select {
	case q.waiting <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.stop:
		return nil, ErrClosed
	}
	a := q.await(ctx, r)
	return a.commit, a.err
}

func (q *Queue) await(ctx context.Context, r *Request) answer {
	select {
	case a := <-r.done:
		return a
	case <-ctx.Done():
		if r.claim() {
			return answer{err: ctx.Err()}
		}
	case <-q.stopped:
		// The committer has ended, perhaps before this request entered the queue.
		if r.claim() {
			return answer{err: ErrClosed}
		}
	}
	return <-r.done
}

// Serve runs the committer: it calls commit for each group until Stop. commit must answer each request.
func (q *Queue) Serve(commit func(group []*Request)) {
	defer close(q.stopped)
	for {
		select {
		case <-q.stop:
			return
		default:
		}
		select {
		case <-q.stop:
			return
		case first := <-q.waiting:
			if group := q.gather(first); len(group) > 0 {
				commit(group)
			}
		}
	}
}

// gather claims the requests in the queue, up to the limits of a group, without waiting.
func (q *Queue) gather(first *Request) []*Request {
	var group []*Request
	ops := 0
	next := first
	for {
		if next.claim() {
			group = append(group, next)
			ops += len(next.Batch.Ops)
		}
		if len(group) >= maxGroupBatches || ops >= maxGroupOps {
			return group
		}
		select {
		case next = <-q.waiting:
		default:
			return group
		}
	}
}

// Stop refuses further writers with ErrClosed and waits for the group in progress.
func (q *Queue) Stop() {
	q.closing.Do(func() { close(q.stop) })
	<-q.stopped
}

// Answers holds the results of a group's requests until they are sent to their writers.
type Answers struct {
	group   []*Request
	answers []answer
}

// ApplyAll applies the batches of a group in order.
func (t *Transaction) ApplyAll(group []*Request) Answers {
	a := Answers{group: group, answers: make([]answer, len(group))}
	for i, r := range group {
		a.answers[i].commit, a.answers[i].err = t.Apply(r.Batch)
	}
	return a
}

// Send delivers the results to the writers. Call it once the transaction is durable.
func (a Answers) Send() {
	for i, r := range a.group {
		r.done <- a.answers[i]
	}
}

// Net returns the final resource of each key that a group of commits changes, nil for a deletion.
func Net(commits []*Commit) map[resources.Key]*resources.Resource {
	changes := map[resources.Key]*resources.Resource{}
	for _, c := range commits {
		for _, change := range c.Changes {
			changes[change.Key()] = change.New
		}
	}
	return changes
}
