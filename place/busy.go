package place

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// DiskPatience is how long a write may take before whoever waits for it counts as unable to write.
const DiskPatience = 10 * time.Second

// ErrHangs reports that a disk has neither taken nor refused a write.
var ErrHangs = errors.New("the disk neither takes nor refuses a write")

// Busy knows since when a disk has been busy with a write. One write is under way at a time; Check is safe for concurrent
// use with it. The zero value is idle.
type Busy struct{ since atomic.Pointer[time.Time] }

// Begin notes that a write begins.
func (b *Busy) Begin() {
	now := time.Now()
	b.since.Store(&now)
}

// End notes that it has ended, whatever came of it.
func (b *Busy) End() { b.since.Store(nil) }

// Check returns nil unless a write takes longer than DiskPatience, and otherwise an error that wraps ErrHangs. It returns
// at once.
func (b *Busy) Check() error {
	since := b.since.Load()
	if since == nil || time.Since(*since) < DiskPatience {
		return nil
	}
	return fmt.Errorf("%w since %s; find out what the disk waits for, and the server continues when it answers", ErrHangs,
		since.UTC().Format(time.RFC3339))
}
