package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
)

// Limits of a group, so that the first writer of one does not wait for ever more that join.
const (
	maxGroupBatches = 512
	maxGroupOps     = 8192
)

// Queue is where the writers of a durable store wait for its committer, which takes all that has queued up at once: a lone
// writer does not wait for company; writers that come during a write make up the next group.
type Queue struct {
	waiting chan *Request
	// stop tells the committer to end, stopped that it has.
	stop, stopped chan struct{}
	closing       sync.Once
}

// NewQueue returns a queue in which size batches may wait; more writers wait in Apply. Serve must be called once.
func NewQueue(size int) *Queue {
	return &Queue{waiting: make(chan *Request, size), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// Len is how many requests wait.
func (q *Queue) Len() int { return len(q.waiting) }

// Stopped is closed when Stop was called.
func (q *Queue) Stopped() <-chan struct{} { return q.stop }

// Request is a batch on its way through the committer.
type Request struct {
	Batch Batch
	// claimed: the first to claim it decides what becomes of the request.
	claimed atomic.Bool
	// done gets the one answer; it has room for it, so the committer never waits.
	done chan answer
}

type answer struct {
	commit *Commit
	err    error
}

// Answer ends the wait of the request's writer. The committer calls it once for each request.
func (r *Request) Answer(c *Commit, err error) { r.done <- answer{c, err} }

// claim reports whether the caller is the first: the committer, to apply the batch, or its writer, to give up.
func (r *Request) claim() bool { return r.claimed.CompareAndSwap(false, true) }

// Apply queues a batch and waits for its answer. Waiting in the queue ends with ctx; a batch that was taken up is waited
// for. Errors: ctx's, ErrClosed, the committer's.
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
		// The committer has ended, perhaps before this request was in the queue.
		if r.claim() {
			return answer{err: ErrClosed}
		}
	}
	return <-r.done
}

// Serve is the committer: it calls commit, which answers each request of a group, until Stop.
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

// gather claims what is in the queue, without waiting.
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

// Stop refuses further writers with ErrClosed and waits for the group that was taken up.
func (q *Queue) Stop() {
	q.closing.Do(func() { close(q.stop) })
	<-q.stopped
}

// Answers are what became of the requests of a group, not yet told to their writers.
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

// Send tells the writers, once the transaction has been made durable.
func (a Answers) Send() {
	for i, r := range a.group {
		r.done <- a.answers[i]
	}
}

// Net is what a group of commits makes of each key, nil for a deletion.
func Net(commits []*Commit) map[resources.Key]*resources.Resource {
	changes := map[resources.Key]*resources.Resource{}
	for _, c := range commits {
		for _, change := range c.Changes {
			changes[change.Key()] = change.New
		}
	}
	return changes
}
