package tracker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Accepted counts the deletions of one type that an operator accepted.
type Accepted struct {
	Type  resources.Type `json:"type"`
	Count int            `json:"count"`
}

// Steered is the response to an operator's decision about a zone's sync: the types that it affects.
type Steered struct {
	Types []Accepted `json:"types"`
}

// Accept deletes the copies whose deletion is held, of one type or, if t is empty, of all. If seen is not empty, it
// deletes only what HeldDeletions.Mark stood for. A copy that has changed since, or came back, stays. It returns
// store.ErrConflict if another writer was first, which may be tried again, or if nothing that is held has the mark.
func (l *Ledger) Accept(ctx context.Context, s store.Store, t resources.Type, seen string) ([]Accepted, error) {
	done, found := []Accepted{}, seen == ""
	for _, d := range resources.Descriptors() {
		if t != "" && d.Type != t {
			continue
		}
		for _, way := range []exchange.Direction{exchange.GlobalToZone, exchange.ZoneToGlobal} {
			l.mu.Lock()
			n := l.lines[LineKey{way, d.Type}]
			l.mu.Unlock()
			if n == nil {
				continue
			}
			waiting := n.holds()
			if seen != "" && waiting.mark() != seen {
				continue
			}
			found = true
			count, err := n.accept(ctx, s, waiting)
			if err != nil {
				return done, err
			}
			if count > 0 {
				done = append(done, Accepted{Type: d.Type, Count: count})
			}
		}
	}
	if !found {
		return done, ErrHeldOthers
	}
	return done, nil
}

// ErrHeldOthers is the error of Accept if nothing that is held has the mark.
var ErrHeldOthers = fmt.Errorf("what is held is no longer what was shown, so nothing was deleted: look at it again: %w", store.ErrConflict)

// mark returns a text that stands for exactly these deletions; empty for none.
func (h held) mark() string {
	if len(h.keys) == 0 {
		return ""
	}
	lines := make([]string, 0, len(h.keys))
	for key, revision := range h.keys {
		lines = append(lines, fmt.Sprintf("%s %d\n", key, revision))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:12])
}

// TypesOf lists the types of a status, once each, as the answer to a resync.
func TypesOf(s SyncStatus) []Accepted {
	types := []Accepted{}
	for _, one := range s.Types {
		if !slices.ContainsFunc(types, func(a Accepted) bool { return a.Type == one.Type }) {
			types = append(types, Accepted{Type: one.Type})
		}
	}
	return types
}
