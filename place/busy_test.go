package place_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/causeway-mesh/causeway/place"
)

// TestBusy checks that a write counts as hung once it takes long, and no longer once it has ended.
func TestBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b place.Busy
		if err := b.Check(); err != nil {
			t.Errorf("nothing is written, and it says %v", err)
		}
		b.Begin()
		since := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(place.DiskPatience - time.Nanosecond)
		if err := b.Check(); err != nil {
			t.Errorf("a short write: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := b.Check(); !errors.Is(err, place.ErrHangs) || !strings.Contains(err.Error(), since) {
			t.Errorf("a long write: %v", err)
		}
		b.End()
		if err := b.Check(); err != nil {
			t.Errorf("the write has ended, and it says %v", err)
		}
	})
}
