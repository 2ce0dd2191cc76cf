package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// silence is how long a global may send nothing of its lists before the types that it has not spoken of count as those
// that it does not serve, as far as answers about all types go.
const silence = 5 * time.Minute

// Comparing lists the types of which it is unknown whether the connected global has newer resources, because this session
// has not had its whole list of them, and since when. It looks at one type, or at all if t is empty. Among all, those of
// which the global has said nothing do not count once it has sent nothing of its lists for minutes: it does not serve
// them. Changes of types that are compared say nothing about the others.
func (z *Zone) Comparing(t resources.Type) (since time.Time, types []resources.Type) {
	if _, away := z.Away(); away {
		return time.Time{}, nil
	}
	since = z.ledger.SessionSince()
	heard := z.met.lastReceived()
	if heard.Before(since) {
		heard = since
	}
	_, waiting := z.Waiting()
	silent := !waiting && z.config.Now().Sub(heard) >= silence
	for _, d := range resources.Descriptors() {
		switch {
		case !exchange.GlobalToZone.Carries(d) || isLive(d.Type) || t != "" && d.Type != t || z.met.hasWhole(d.Type):
		case t == "" && silent && !z.met.hasPart(d.Type):
		default:
			types = append(types, d.Type)
		}
	}
	return since, types
}

// received records a message about a type.
func (a *peerStore) received(t resources.Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.compared[t] {
		a.receivedAt = a.now()
	}
	if a.parts == nil {
		a.parts = map[resources.Type]bool{}
	}
	a.parts[t] = true
}

// lastReceived returns the time of the last message about a type that was not compared yet; zero if there was none.
func (a *peerStore) lastReceived() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.receivedAt
}

// hasPart reports whether this session has had some of a type.
func (a *peerStore) hasPart(t resources.Type) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parts[t]
}
