package kds

import (
	"context"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// notingInBatch is Epochs whose notes of what was here before a list are an operation, as those of whole servers are.
type notingInBatch struct{ notedEpoch }

func (n *notingInBatch) NoteBefore(context.Context, Before) ([]store.Op, error) {
	return []store.Op{{}}, nil
}

// hangingStore is a store whose disk takes nothing until hangs is closed.
type hangingStore struct {
	store.Store
	entered, hangs chan struct{}
}

func (h *hangingStore) Apply(ctx context.Context, _ store.Batch) (*store.Commit, error) {
	close(h.entered)
	select {
	case <-h.hangs:
		return &store.Commit{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAnswersDoNotWaitForANote has the disk hang in the write that drops the number of copies before a list: what answers
// ask of the peer's store is told meanwhile.
func TestAnswersDoNotWaitForANote(t *testing.T) {
	t.Parallel()
	h := &hangingStore{Store: store.NewMemory(), entered: make(chan struct{}), hangs: make(chan struct{})}
	a := &peerStore{kept: &notingInBatch{}, store: h, ledger: tracker.NewLedger(time.Now, nil), now: time.Now, log: testLog(),
		from: exchange.GlobalToZone, noted: Before{resources.TypeMeshTimeout: 30},
		compared: map[resources.Type]bool{resources.TypeMeshTimeout: true}}
	reviewed := make(chan error, 1)
	go func() { reviewed <- a.review(t.Context()) }()
	<-h.entered
	told := make(chan bool, 1)
	go func() { told <- a.hasWhole(resources.TypeMeshTimeout) && a.lastReceived().IsZero() }()
	select {
	case ok := <-told:
		if n, noted := a.before(resources.TypeMeshTimeout); !ok || !noted || n != 30 {
			t.Errorf("while the disk hangs it tells %v, and noted are %d, %v", ok, n, noted)
		}
	case <-time.After(10 * time.Second):
		t.Error("what answers ask of the peer's store waits for the disk")
	}
	close(h.hangs)
	if err := <-reviewed; err != nil {
		t.Error(err)
	}
	if _, noted := a.before(resources.TypeMeshTimeout); noted {
		t.Error("the number stays, though it is dropped from the store")
	}
}
