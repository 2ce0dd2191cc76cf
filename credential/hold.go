package credential

import (
	"context"
	"fmt"
	"os"
	"time"
)

// holdRetry is how often a file that another process holds is tried.
const holdRetry = 50 * time.Millisecond

// Hold holds a file, which it creates, for this process: it waits until no other one does. The system frees the file when
// the process ends. doing says what holders of it do, for the error of one that waits until ctx ends.
func Hold(ctx context.Context, path, doing string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(holdRetry)
	defer tick.Stop()
	for {
		held, err := tryLock(f)
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if held {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("another causewayctl %s, and holds %s: %w", doing, path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
