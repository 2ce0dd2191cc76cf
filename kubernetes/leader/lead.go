package leader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
)

// waitingDir, in the data folder, holds the certificate of the diagnostics port while this replica waits.
const waitingDir = "waiting"

// requests limits those to the API server, in a second. They do not queue behind those of the server itself.
const requests = 400

// Lead waits until this replica leads, and fills its data folder. Meanwhile it serves diagnostics. It returns nil
// without an error if ctx ends before.
func Lead(ctx context.Context, c Config) (*Term, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: c.Kubeconfig, UserAgent: c.Agent + "/" + server.Version(),
		RequestsPerSecond: requests})
	if err != nil {
		return nil, err
	}
	if err := server.MakeDataDir(c.DataDir, c.Log); err != nil {
		return nil, err
	}
	listener, err := c.listen()
	if err != nil {
		return nil, err
	}
	diagnostics := server.NewDiagnostics()
	diagnostics.Guard(c.Panics)
	diagnostics.SetStarting(errors.New("the Lease has not been read yet"))
	w := &waiting{cfg: c, client: client, diagnostics: diagnostics}
	w.lease = newLease(&c, client)
	w.vault = &vault{client: client, box: c.Box, namespace: c.Namespace, prefix: c.Lease, manager: "causeway-" + c.Pod,
		patience: c.times.secret}
	var t *Term
	ended := errors.New("waited")
	err = server.Together(ctx, func(ctx context.Context) error { return diagnostics.Serve(ctx, listener) },
		func(ctx context.Context) error {
			t = w.wait(ctx)
			return ended
		})
	if errors.Is(err, ended) {
		err = nil
	}
	return t, err
}

// listen opens the diagnostics port.
func (c *Config) listen() (net.Listener, error) {
	l, err := server.ListenOpen(c.DiagnosticsAddress)
	if err != nil {
		return nil, fmt.Errorf("--diagnostics-address: %w", err)
	}
	if server.IsLoopback(l.Addr()) {
		return l, nil
	}
	dir := filepath.Join(c.DataDir, waitingDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	certificate, err := server.LoadOrCreateCertificate(dir, []string{c.Pod}, c.Box, c.Now)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return server.SecureHTTP(l, certificate, server.Clients{}), nil
}

// waiting is a replica that does not lead.
type waiting struct {
	cfg         Config
	client      *apiserver.Client
	lease       *lease
	vault       *vault
	diagnostics *server.Diagnostics
	said        string
	// failures counts the leads in a row that could not begin.
	failures int
}

// wait returns the lead of this replica, or nil when ctx ends.
func (w *waiting) wait(ctx context.Context) *Term {
	w.hide(ctx)
	for {
		t, err := w.try(ctx)
		if t != nil || ctx.Err() != nil {
			return t
		}
		w.tell(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.pause(err)):
		}
	}
}

// maxFailures bounds the pause after leads that could not begin: look, doubled so often. Each costs some 30 requests.
const maxFailures = 5

// pause returns the time until the next look at the Lease: a replica that could lead looks when the lead ends.
func (w *waiting) pause(err error) time.Duration {
	if err != nil {
		return w.cfg.times.look << min(w.failures, maxFailures)
	}
	if left := w.lease.free(); left > 0 && left < w.cfg.times.look {
		return left
	}
	return w.cfg.times.look
}

// tell says what this replica waits for: in the log when it changes, and to probes. One that waits for the first to begin
// is ready: a StatefulSet restarts the first, which has no Lease yet, once the others are.
func (w *waiting) tell(err error) {
	text := "this replica waits: " + w.lease.seen.Spec.Holder + " leads"
	if err != nil {
		text = err.Error()
	}
	if errors.Is(err, errNotFirst) {
		w.diagnostics.SetStarting(nil)
	} else {
		w.diagnostics.SetStarting(err)
	}
	if text == w.said {
		return
	}
	w.said = text
	if err != nil {
		w.cfg.Log.Warn("this replica cannot lead", "error", err)
		return
	}
	w.cfg.Log.Info("this replica waits", "leader", w.lease.seen.Spec.Holder, "lease", w.lease.name.String())
}

// try takes the lead if it is free. Without a Term and without an error, another replica leads.
func (w *waiting) try(ctx context.Context) (*Term, error) {
	before, ok, err := w.take(ctx)
	if !ok || err != nil {
		return nil, err
	}
	t, err := w.begin(ctx, before)
	if err != nil {
		w.failures++
	}
	return t, err
}

// take takes the Lease if it is free, and this replica may begin.
func (w *waiting) take(ctx context.Context) (before *kept, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.times.safe)
	defer cancel()
	if err := w.lease.read(ctx); err != nil || w.lease.free() > 0 {
		return nil, false, err
	}
	gone := w.lease.seen.Metadata.ResourceVersion == ""
	if gone && w.lease.unchanged() >= w.cfg.times.lease { // nobody leads: somebody deleted it, to begin anew
		w.lease.begun.Store(false)
	}
	if before, err = w.read(ctx); err != nil {
		return nil, false, err
	}
	if gone && before != nil && w.lease.unchanged() < w.cfg.times.lease { // a leader makes it again
		return nil, false, nil
	}
	ok, err = w.lease.write(ctx, w.lease.holder)
	return before, ok, err
}

// read reads the core. It returns nil where this replica may begin, and an error where nobody leads and it must not.
func (w *waiting) read(ctx context.Context) (*kept, error) {
	raw, version, err := w.vault.get(ctx, coreSuffix)
	switch {
	case errors.Is(err, errGone) && w.lease.begun.Load():
		return nil, fmt.Errorf("%w: put it back from a backup of the cluster; to begin with new authorities, which no proxy trusts, delete the Lease %s", err, w.lease.name)
	case errors.Is(err, errGone) && !w.cfg.first():
		return nil, errNotFirst
	case errors.Is(err, errGone):
		return nil, nil
	case err != nil:
		return nil, err
	}
	core, err := unpack(raw)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", w.vault.name(coreSuffix), err)
	}
	return &kept{core: core, version: version}, nil
}

// begin is the start of a lead: the Secrets are read again, as the last leader may have written, and fill the folder.
func (w *waiting) begin(ctx context.Context, before *kept) (*Term, error) {
	began := time.Now()
	t := &Term{cfg: w.cfg, client: w.client, lease: w.lease, vault: w.vault, number: w.lease.seen.Spec.Transitions,
		began: w.cfg.Now(), log: map[resources.Key]entry{}, trimmed: make(chan struct{}), versions: map[string]string{}, sums: map[string][32]byte{}}
	t.ctx, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	t.done.Go(func() {
		err := w.lease.renew(t.ctx, func(err error) { w.cfg.Log.Warn("the Lease is not renewed yet", "error", err) })
		if err != nil {
			w.cfg.Log.Error("this replica leads no longer", "error", err)
			t.stop(err)
		}
	})
	now, err := w.read(ctx)
	if err == nil && before != nil && now == nil {
		err = errGone
	}
	if err == nil && now != nil { // the Lease was deleted, and counts from the start
		t.number = max(t.number, now.core.Term+1)
	}
	if err == nil {
		err = t.fill(ctx, now)
	}
	if err != nil {
		t.Close(ctx, nil)
		return nil, err
	}
	w.cfg.Log.Info("this replica leads", "lease", w.lease.name.String(), "term", t.number, "after", time.Since(began).String())
	return t, nil
}

// Close ends the lead: it stores the rest, and gives the Lease back, so that another replica leads at once. Nothing may
// be served any more. from is the store, nil if it was not opened.
func (t *Term) Close(ctx context.Context, from store.Reader) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.times.safe)
	defer cancel()
	lost := t.Held()
	t.mu.Lock()
	started := t.started
	t.mu.Unlock()
	if lost == nil && started && from != nil {
		_ = t.flush(ctx, from.Snapshot(), all()) // reported
	}
	t.stop(context.Canceled)
	t.done.Wait()
	if t.Held() != nil {
		return
	}
	(&waiting{cfg: t.cfg, client: t.client}).hide(ctx)
	if err := t.lease.giveBack(ctx); err != nil {
		t.cfg.Log.Warn("the Lease is not given back: the next leader waits for its end", "error", err)
	}
}
