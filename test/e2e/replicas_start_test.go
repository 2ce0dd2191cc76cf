package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestStartBeforeEtcd checks that a global that starts while etcd is away stays alive, is not ready and says why, and
// continues when etcd returns.
func TestStartBeforeEtcd(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 1, 0)
	r.apply(r.global, timeout("kept", "10s"))
	r.global.Kill()
	r.etcd.Members[0].Kill()
	started := make(chan error, 1)
	go func() { started <- r.global.Start(t.Context()) }()
	r.eventually("it says why it is not ready", func(ctx context.Context) error {
		if _, err := r.global.Diagnostics(ctx, "/livez"); err != nil {
			return err
		}
		said, err := r.global.Diagnostics(ctx, "/readyz")
		if err == nil || !strings.Contains(string(said), "starting: ") ||
			!strings.Contains(string(said), r.etcd.Endpoints()[0]) {
			return fmt.Errorf("it says %q: %w", said, err)
		}
		return nil
	})
	r.etcd.Members[0].Start(t)
	r.must(<-started)
	r.arrives(r.global, "kept")
	if _, err := r.global.Diagnostics(t.Context(), "/readyz"); err != nil {
		t.Error(err)
	}
	if log := r.global.Log(); !strings.Contains(log, "trying to start again") {
		t.Errorf("its log has nothing of it:\n%s", log)
	}
}

// TestStartWithoutALeader checks that a global that starts just after etcd has lost its leader does so at the first
// attempt.
func TestStartWithoutALeader(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 3, 1, 0)
	for range 3 {
		r.global.Kill()
		leader := r.etcd.Leader(t)
		leader.Kill()
		r.must(r.global.Start(t.Context()))
		leader.Start(t)
		leader.Ready(t)
	}
}
