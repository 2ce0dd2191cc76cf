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

// Clock is the wall clock of servers that BuildWithClocks compiled: the machine's, and so much ahead or behind as a test says. What a
// process measures by its monotonic clock (timeouts, timers) goes on as ever, as when the clock of a machine is set.
type Clock struct {
	path string
	set  *os.File
}

// NewClock makes a clock that agrees with the machine's. Close it after use.
func NewClock(path string) (*Clock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	c := &Clock{path: path, set: f}
	return c, c.Set(0)
}

// Set has the clock differ from the machine's by ahead, in whole seconds, at once in all processes that go by it; negative is behind.
func (c *Clock) Set(ahead time.Duration) error {
	_, err := c.set.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)), 0)
	return err
}

// Close lets the processes that go by it be: they keep what it was set to last.
func (c *Clock) Close() error { return c.set.Close() }

// environment is what a process that goes by the clock is started with; nil for none.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	return []string{clockVariable + "=" + c.path}
}

const (
	clockVariable = "CAUSEWAY_TEST_CLOCK"
	// readsClock is how package time asks the runtime for the wall clock; asksClock comes in its place.
	readsClock = "sec, nsec, mono := runtimeNow()"
	asksClock  = "sec, nsec, mono := shiftedNow()"
)

// BuildWithClocks is Build with an overlay over package time, in which time.Now looks into the file of a Clock, if the environment names
// one. What it lays over is made from the installed sources of Go. All of the standard library, and all that imports it, is compiled for it: some
// 100 s of one core the first time, after which the go command has it in its cache.
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

// clockOverlay writes the overlay's files into dir and returns the name of the one that lists them.
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

// shiftedSource is laid beside time.go. The file of the clock is mapped, so that a reading costs one load and never fails.
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
