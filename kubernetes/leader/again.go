package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Again replaces this process by a new one if err is ErrLost, so that nothing of the lead is left in memory. The kubelet
// sees no failure, and waits for nothing. It returns err otherwise, or if the system refuses. A process that was told to
// end, which ends ctx, ends.
func Again(ctx context.Context, err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	program, failed := os.Executable()
	if failed == nil {
		failed = syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // this very program
	}
	return fmt.Errorf("%w; start again: %w", err, failed)
}
