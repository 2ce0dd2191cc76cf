package tracker

import (
	"context"
	"slices"

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

// Accept deletes the copies whose deletion is held, of one type or, if t is empty, of all. A copy that has changed
// since, or came back, stays. It returns store.ErrConflict if another writer was first: call it again.
func (l *Ledger) Accept(ctx context.Context, s store.Store, t resources.Type) ([]Accepted, error) {
	done := []Accepted{}
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
			count, err := n.accept(ctx, s)
			if err != nil {
				return done, err
			}
			if count > 0 {
				done = append(done, Accepted{Type: d.Type, Count: count})
			}
		}
	}
	return done, nil
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
