package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestLargerThanTheLimit checks that no new resource exceeds MaxResourceBytes. An older one that does may be written if
// it does not grow.
func TestLargerThanTheLimit(t *testing.T) {
	const over = store.MaxResourceBytes + 1000
	key := storetest.Key("a")
	for _, row := range []struct {
		name          string
		was, becomes  int // bytes of its label; 0: absent
		synced, taken bool
	}{
		{"new", 0, over, false, false},
		{"grown over it", 10, over, false, false},
		{"grown further", over, over + 1, false, false},
		{"as large as it was", over, over, false, true},
		{"smaller than it was", over, over - 1, false, true},
		{"new, from who decides about it", 0, over, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := store.NewMemory()
			if row.was > 0 {
				before := storetest.Resource(key, 1, map[string]string{"a": strings.Repeat("x", row.was)})
				if err := s.Load(func(put func(*resources.Resource) error) (uint64, error) { return 1, put(before) }); err != nil {
					t.Fatal(err)
				}
			}
			b := storetest.Put(storetest.Resource(key, 1, map[string]string{"a": strings.Repeat("y", row.becomes)}))
			b.Synced = row.synced
			_, err := s.Apply(t.Context(), b)
			var refused *store.TooLargeError
			if row.taken && err != nil || !row.taken && !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}
