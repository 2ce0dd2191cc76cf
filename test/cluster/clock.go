package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Clock is the wall clock of servers that BuildWithClocks compiled: the machine's clock plus an offset that the test
// sets. Measurements by the monotonic clock (timeouts, timers) are not affected, as when a machine's clock is set.
type Clock struct {
	path string
	set  *os.File
}

// NewClock creates a clock that agrees with the machine's. Close it after use.
func NewClock(path string) (*Clock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	c := &Clock{path: path, set: f}
	return c, c.Set(0)
}

// Set sets the clock's offset from the machine's, in whole seconds, at once in all processes that use it. A negative
// offset is behind.
func (c *Clock) Set(ahead time.Duration) error {
	_, err := c.set.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)), 0)
	return err
}

// Close releases the clock. The processes that use it keep the last offset.
func (c *Clock) Close() error { return c.set.Close() }

// environment returns the variable that makes a process use the clock; nil for a nil clock.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	return []string{clockVariable + "=" + c.path}
}

const (
	clockVariable = "CAUSEWAY_TEST_CLOCK"
	// readsClock is how package time reads the wall clock from the runtime; asksClock replaces it.
	readsClock = "sec, nsec, mono := runtimeNow()"
	asksClock  = "sec, nsec, mono := shiftedNow()"
)

// BuildWithClocks is Build with an overlay for package time, in which time.Now reads the file of a Clock if the
// environment names one. The overlay is made from the installed sources of Go. It recompiles the standard library and
// all its importers: some 100 s of one core the first time, after which the result is in the cache of the go command.
func BuildWithClocks(ctx context.Context, bin string) error {
	dir, err := os.MkdirTemp("", "causeway-clock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := clockOverlay(ctx, dir)
	if err != nil {
		return fmt.Errorf("programs with clocks that can be set: %w", err)
	}
	return build(ctx, bin, "-overlay", overlay)
}

// clockOverlay writes the overlay's files into dir and returns the name of the file that lists them.
func clockOverlay(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "time").Output()
	if err != nil {
		return "", err
	}
	from := strings.TrimSpace(string(out))
	source, err := os.ReadFile(filepath.Join(from, "time.go"))
	if err != nil {
		return "", err
	}
	if !bytes.Contains(source, []byte(readsClock)) {
		return "", fmt.Errorf("time.go in %s has no %q: see what time.Now of this version of Go does", from, readsClock)
	}
	replace := map[string]string{
		filepath.Join(from, "time.go"):    filepath.Join(dir, "time.go"),
		filepath.Join(from, "shifted.go"): filepath.Join(dir, "shifted.go"),
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, errors.Join(
		os.WriteFile(filepath.Join(dir, "time.go"), bytes.ReplaceAll(source, []byte(readsClock), []byte(asksClock)), 0o600),
		os.WriteFile(filepath.Join(dir, "shifted.go"), []byte(shiftedSource), 0o600),
		os.WriteFile(file, list, 0o600),
	)
}

// shiftedSource is added beside time.go. It maps the clock's file, so that a reading costs one load and never fails.
const shiftedSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var shift = openShift()

func openShift() *int64 {
	path, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("clock " + path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("clock " + path + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func shiftedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	if shift != nil { // package variables may be set by what runs before
		sec += atomic.LoadInt64(shift)
	}
	return sec, nsec, mono
}
`
