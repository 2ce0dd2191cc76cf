package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t testing.TB, view store.ViewConfig) store.Store {
		s := store.NewMemoryWith(view)
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
