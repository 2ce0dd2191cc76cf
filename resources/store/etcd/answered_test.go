package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestWriteWithoutEtcdIsAnsweredInTime checks that a write whose etcd is gone is answered once the time of a transaction, and
// of the last question, is over: a server that ends waits for its writers.
func TestWriteWithoutEtcdIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	const timeout = 5 * time.Second
	s := several(t, 1, Config{Endpoints: c.Endpoints(), Timeout: timeout})[0]
	if _, err := s.Apply(context.Background(), storetest.Put(storetest.Resource(storetest.Key("before"), 1, nil))); err != nil {
		t.Fatal(err)
	}
	c.Members[0].Kill()
	begun := time.Now()
	_, err := s.Apply(context.Background(), storetest.Put(storetest.Resource(storetest.Key("lost"), 1, nil)))
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
	if took, most := time.Since(begun), timeout+lastQuestion+5*timeout/8; took > most {
		t.Errorf("it was answered after %s, want at most %s", took, most)
	}
}
