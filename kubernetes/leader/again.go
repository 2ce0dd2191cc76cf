package leader

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Again replaces this process by a new one if err is ErrLost, so that nothing of the lead is left in memory. The kubelet
// sees no failure, and waits for nothing. It returns err otherwise, or if the system refuses.
func Again(err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	program, failed := os.Executable()
	if failed == nil {
		failed = syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // this very program
	}
	return fmt.Errorf("%w; start again: %w", err, failed)
}
