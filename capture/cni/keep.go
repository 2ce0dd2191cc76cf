package cni

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/time/rate"
)

const (
	// recheckTime is how often Keep looks, without being told of a change.
	recheckTime = 10 * time.Second
	// keepsBurst and keepsEach limit how often Keep writes where another writer undoes it each time.
	keepsBurst, keepsEach = 10, time.Second
)

// Keep installs the plugin and keeps it in its place until ctx ends, whoever writes the list of plugins anew. It calls
// told with the outcome whenever that changes: nil once the plugin is in its place. It fails if it cannot watch the
// folders.
func (n *Node) Keep(ctx context.Context, told func(changed bool, err error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	changes := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() { gather(watcher, changes) })
	defer watching.Wait()
	defer watcher.Close()
	if err := errors.Join(watcher.Add(n.ConfDir), watcher.Add(n.BinDir)); err != nil {
		return err
	}
	limit := rate.NewLimiter(rate.Every(keepsEach), keepsBurst)
	before := "?"
	for {
		if err := limit.Wait(ctx); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		changed, err := n.Install()
		is := ""
		if err != nil {
			is = err.Error()
		}
		if changed || is != before {
			told(changed, err)
			before = is
		}
		recheck := time.NewTimer(recheckTime)
		select {
		case <-ctx.Done():
		case <-changes:
		case <-recheck.C:
		}
		recheck.Stop()
	}
}

// gather makes one change of all that happen until somebody looks. It ends when the watcher is closed.
func gather(w *fsnotify.Watcher, changes chan<- struct{}) {
	for {
		var more bool
		select {
		case _, more = <-w.Events:
		case _, more = <-w.Errors: // events were lost
		}
		if !more {
			return
		}
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}
