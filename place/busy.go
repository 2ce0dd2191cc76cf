package place

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// DiskPatience is how long a write may take before its waiters count as unable to write.
const DiskPatience = 10 * time.Second

// ErrHangs reports that a disk has neither completed nor refused a write.
var ErrHangs = errors.New("the disk neither takes nor refuses a write")

// Busy tracks since when a disk has been busy with a write. One write is in progress at a time; Check may be called
// concurrently. The zero value is idle.
type Busy struct{ since atomic.Pointer[time.Time] }

// Begin records the start of a write.
func (b *Busy) Begin() {
	now := time.Now()
	b.since.Store(&now)
}

// End records its end, whatever the result.
func (b *Busy) End() { b.since.Store(nil) }

// Check returns nil, or an error that wraps ErrHangs if a write takes longer than DiskPatience. It returns at once.
func (b *Busy) Check() error {
	since := b.since.Load()
	if since == nil || time.Since(*since) < DiskPatience {
		return nil
	}
	return fmt.Errorf("%w since %s; find out what the disk waits for, and the server continues when it answers", ErrHangs,
		since.UTC().Format(time.RFC3339))
}
