package cluster

import (
	"context"
	"encoding/binary"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/server/programtest"
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

// environment returns the variable that makes a process use the clock, or nil for a nil clock.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	return []string{ClockVariable + "=" + c.path}
}

// ClockVariable is the variable that names the file of a Clock for programs of BuildWithClocks.
const ClockVariable = "CAUSEWAY_TEST_CLOCK"

// BuildWithClocks is Build for programs whose wall clock a Clock sets. Programs of Build use the machine's clock,
// whatever the environment says.
func BuildWithClocks(ctx context.Context, bin string) error {
	return build(ctx, bin, programtest.SettableClock)
}
