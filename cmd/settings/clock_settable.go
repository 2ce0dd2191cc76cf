//go:build settableclock

package settings

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// clockVariable names the file with the offset of the clock from the machine's: eight bytes, in seconds.
const clockVariable = "CAUSEWAY_TEST_CLOCK"

// Clock returns the machine's clock, or one that is offset by the current content of the file in CAUSEWAY_TEST_CLOCK.
// It panics if it cannot read that file. Such a clock behaves like a machine's clock that is set while programs run:
// only the wall reading of its times moves, and the monotonic reading, by which Sub and timers measure, does not.
func Clock() func() time.Time {
	path, ok := os.LookupEnv(clockVariable)
	if !ok {
		return time.Now
	}
	offset, err := mapOffset(path)
	if err != nil {
		panic(clockVariable + ": " + err.Error())
	}
	now := time.Now()
	if ahead := shifted(now, 3600); ahead.Sub(now) != 0 || ahead.Unix()-now.Unix() != 3600 {
		panic("shifted does not know how this version of Go keeps the wall reading of a time")
	}
	return func() time.Time { return shifted(time.Now(), atomic.LoadInt64(offset)) }
}

// mapOffset maps the file into memory, so that a reading costs one load and never fails.
func mapOffset(path string) (*int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*int64)(unsafe.Pointer(&page[0])), nil
}

// shifted returns t, from time.Now, with another wall reading. No function of package time moves only one of the
// readings. The wall reading is in the upper bits of the first field: seconds, above 30 bits of nanoseconds.
func shifted(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}
