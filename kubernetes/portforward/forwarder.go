package portforward

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Config configures New.
type Config struct {
	// Context is a context of the kubeconfig. Kubeconfig is its file; kubectl's own choice if it is empty.
	Context, Kubeconfig string
	// Patience bounds the time until kubectl forwards. Required.
	Patience time.Duration
	// Notices gets what kubectl says while it takes long, such as a sign-in that a credential plugin asks for.
	Notices io.Writer
}

// Forwarder dials into a cluster. It runs one kubectl for each target, from the first use until Close, and another one if
// that ends. It is safe for concurrent use.
type Forwarder struct {
	config Config

	mu      sync.Mutex
	running map[target]*kubectl // guarded by mu
	last    *kubectl            // guarded by mu: the one that was used last
	closed  bool                // guarded by mu
}

// New returns a Forwarder. It starts nothing.
func New(c Config) *Forwarder { return &Forwarder{config: c, running: map[target]*kubectl{}} }

// DialContext connects to HOST:PORT in the cluster. Errors are *Error, or of ctx.
func (f *Forwarder) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := targetOf(address)
	if err != nil {
		return nil, err
	}
	k, err := f.kubectlFor(to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.Patience)
	defer cancel()
	local, err := k.ready(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, local)
	if err != nil {
		return nil, k.problem(fmt.Sprintf("kubectl port-forward does not listen: %v", err))
	}
	return conn, nil
}

// kubectlFor returns the running kubectl for a target, or starts one.
func (f *Forwarder) kubectlFor(to target) (*kubectl, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, net.ErrClosed
	}
	k := f.running[to]
	if k == nil || k.hasEnded() {
		k = start(&f.config, to)
		f.running[to] = k
	}
	f.last = k
	return k, nil
}

// Lost returns what kubectl says of the connection that was used last, if it ended or failed: an *Error, or nil. It waits
// for that for a moment, because the caller sees the end of the connection first.
func (f *Forwarder) Lost() error {
	f.mu.Lock()
	k := f.last
	f.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.lost()
}

// Close ends all kubectl, and with them the connections.
func (f *Forwarder) Close() {
	f.mu.Lock()
	f.closed = true
	all := f.running
	f.running = nil
	f.mu.Unlock()
	for _, k := range all {
		k.end()
	}
}
