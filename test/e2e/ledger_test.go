package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// ledger writes policies to one server, one at a time, and records the server's promises.
type ledger struct {
	server *cluster.Server
	path   string // of the list
	doc    func(name, value string) map[string]any
	value  func(cluster.Item) string // the value in a stored resource
	prefix string

	mu       sync.Mutex
	promised map[string]string   // by name, what was acknowledged last; "" is a deletion; guarded by mu
	possible map[string][]string // by name, values sent since without an answer; guarded by mu
	next     int                 // values never repeat; guarded by mu
	written  int                 // acknowledged writes; guarded by mu
}

const ledgerNames = 12

// write puts or deletes until ctx ends or the server is gone. It returns the first answer that is neither a success nor
// missing.
func (l *ledger) write(ctx context.Context, rng *rand.Rand) error {
	for ctx.Err() == nil {
		switch err := l.step(ctx, rng); {
		case err == nil:
		case cluster.StatusOf(err) != 0 || errors.Is(err, errLost):
			return err
		default:
			return nil
		}
	}
	return nil
}

// errLost reports that an acknowledged write is missing.
var errLost = errors.New("an acknowledged write is lost")

// step writes or deletes one policy. While an earlier write has no answer, a deletion that finds nothing promises
// nothing.
func (l *ledger) step(ctx context.Context, rng *rand.Rand) error {
	name := fmt.Sprintf("%s-%d", l.prefix, rng.IntN(ledgerNames))
	remove := rng.IntN(5) == 0
	l.mu.Lock()
	l.next++
	value := fmt.Sprint(l.next)
	if remove {
		value = ""
	}
	absent := l.promised[name] == "" || slices.Contains(l.possible[name], "")
	l.possible[name] = append(l.possible[name], value)
	l.mu.Unlock()

	// Wait for the answer of every request: an abandoned one could still take effect after the check.
	sent := context.WithoutCancel(ctx)
	var err error
	if remove {
		err = l.server.API.Delete(sent, l.path+"/"+name)
	} else {
		err = l.server.API.Put(sent, l.path+"/"+name, l.doc(name, value))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.promised[name], l.possible[name] = value, nil
		l.written++
	case remove && cluster.StatusOf(err) == http.StatusNotFound:
		if !absent {
			return fmt.Errorf("%w: %s on %s was %q: %w", errLost, name, l.server.Name(), l.promised[name], err)
		}
		l.possible[name] = l.possible[name][:len(l.possible[name])-1]
		return nil
	}
	return err
}

// check compares the items, by display name, with the promises. If a write had no answer, either value is accepted.
// What check finds becomes the promise, because a later answer may not change it.
func (l *ledger) check(ctx context.Context) error {
	items, err := byDisplayName(ctx, l.server, l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range ledgerNames {
		name := fmt.Sprintf("%s-%d", l.prefix, i)
		got := ""
		if it, ok := items[name]; ok {
			got = l.value(it)
		}
		if got != l.promised[name] && !slices.Contains(l.possible[name], got) {
			return fmt.Errorf("%s on %s is %q, but %q was acknowledged (unanswered since: %q)",
				name, l.server.Name(), got, l.promised[name], l.possible[name])
		}
		l.promised[name], l.possible[name] = got, nil
	}
	return nil
}

// agrees returns nil if other has the promised values.
func (l *ledger) agrees(ctx context.Context, other *cluster.Server) error {
	items, err := byDisplayName(ctx, other, l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range ledgerNames {
		name := fmt.Sprintf("%s-%d", l.prefix, i)
		got := ""
		if it, ok := items[name]; ok {
			got = l.value(it)
		}
		if got != l.promised[name] {
			return fmt.Errorf("%s is %q on %s and %q on %s", name, l.promised[name], l.server.Name(), got, other.Name())
		}
	}
	return nil
}
