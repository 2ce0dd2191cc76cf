package kds

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// metadataEpoch is the header in which a global names the epoch of its store, in HealthCheck's answer, and
// a zone that of its own, in all calls. Peers that do not know it skip it.
const metadataEpoch = "causeway-store-incarnation"

// Epochs keeps, in a server's own store, which store of the peer the server has accepted last, and how much it has
// seen of it.
type Epochs interface {
	// Accepted returns the epoch; empty before the first session.
	Accepted(ctx context.Context) (string, error)
	// Accept replaces it. Errors are the store's.
	Accept(ctx context.Context, epoch string) error
	// Seen returns what the last stored operation of See says; zero if there was none.
	Seen(ctx context.Context) (lineage.Seen, error)
	// See returns the operations that record how much was seen, for the batch that stores it: so the server never has
	// copies of which it does not know when they were seen. It returns none for a peer of which nothing is kept.
	See(ctx context.Context, seen lineage.Seen) ([]store.Op, error)
	// Before returns what the last stored operation of NoteBefore says; nil if nothing is kept of the peer.
	Before(ctx context.Context) (Before, error)
	// NoteBefore returns the operations that replace it, for the batch that begins such a list. It returns none for a
	// peer of which nothing is kept.
	NoteBefore(ctx context.Context, copies Before) ([]store.Op, error)
}

// OwnStore identifies a zone's own store.
type OwnStore interface {
	// Announce returns the epoch and position of the store. If the store does not continue what the global has
	// seen of it, as after a rollback, the store has got another epoch, and renamed is set.
	Announce(ctx context.Context, seen lineage.Seen) (epoch string, now lineage.Seen, renamed bool, err error)
}

// validStore reports whether the epochs that a peer reports are short and printable.
func validStore(n *tracker.NewStore) bool {
	return n == nil || len(n.Known) <= lineage.MaxEpoch && len(n.Announced) <= lineage.MaxEpoch && isWord(n.Known) &&
		isWord(n.Announced)
}

// peerStore tracks the epoch of the peer's store. While the store is a strange one, it holds deletions. The
// store counts as known once every type was compared and no deletion is held: then the store has caught up, or an
// operator has accepted what it lacks. Safe for concurrent use.
type peerStore struct {
	kept Epochs
	// store is this server's own.
	store  store.Store
	ledger *tracker.Ledger
	now    func() time.Time
	log    *slog.Logger
	// from is the direction in which the peer sends.
	from exchange.Direction

	// pulse beats when status changes.
	pulse *tracker.Pulse

	mu sync.Mutex
	// strange is not nil while the announced store is not the accepted one; guarded by mu.
	strange *tracker.NewStore
	// replaced holds what strange stores replaced; guarded by mu.
	replaced *tracker.Replaced
	// announced is the epoch of this session, and point the last position of its store; guarded by mu.
	announced string
	point     lineage.Seen
	// compared holds the types of which this session has had a full list or answer; guarded by mu.
	compared map[resources.Type]bool
	// parts holds the types of which this session has had a message, and receivedAt the time of the last one about a
	// type that was not compared yet; guarded by mu.
	parts      map[resources.Type]bool
	receivedAt time.Time
	// noting is held while the numbers of noted are written to the store, and is taken before mu.
	noting sync.Mutex
	// noted holds what before returns; guarded by mu.
	noted Before
}

// peer and here return the two ends' roles, for logs.
func (a *peerStore) peer() string {
	if a.from == exchange.ZoneToGlobal {
		return "zone"
	}
	return "global"
}

func (a *peerStore) here() string {
	if a.from == exchange.ZoneToGlobal {
		return "global"
	}
	return "zone"
}

// meet begins a session with a peer that announced its store.
func (a *peerStore) meet(ctx context.Context, h health) error {
	a.mu.Lock()
	a.announced, a.point = h.epoch, h.point
	a.mu.Unlock()
	if err := a.recall(ctx); err != nil {
		return err
	}
	if a.kept == nil || h.epoch == "" {
		a.settle(nil)
		return nil
	}
	known, err := a.kept.Accepted(ctx)
	if err != nil {
		return err
	}
	switch {
	case known == "":
		if err := a.kept.Accept(ctx, h.epoch); err != nil {
			return err
		}
		a.settle(nil)
	case known != h.epoch:
		a.settle(&tracker.NewStore{Known: known, Announced: h.epoch, Since: a.now()})
		a.log.Warn("the store of the "+a.peer()+" is not the one that this "+a.here()+
			" knew: it was restored or recreated; missing resources are not deleted until the store has them again or an operator accepts their deletion",
			"known", known, "announced", h.epoch)
	case h.forgotten:
		seen, err := a.seen(ctx)
		if err != nil {
			return err
		}
		a.settle(rolledBack(known, seen, h.point, a.now()))
		a.log.Warn("the store of the global is an older copy of the one that this zone knew: its disk or file was rolled back; missing resources are not deleted until the store has them again or an operator accepts their deletion",
			"store", known, "seen", seen.String(), "is_at", h.point.String())
	default:
		a.settle(nil)
	}
	return nil
}

// seen returns how much of the peer's store was seen.
func (a *peerStore) seen(ctx context.Context) (lineage.Seen, error) {
	if a == nil || a.kept == nil {
		return lineage.Seen{}, nil
	}
	return a.kept.Seen(ctx)
}

// current returns ErrMoved if this server has seen more of the peer's store than the peer compared its store with. A
// peer that compared nothing is of another version.
func (a *peerStore) current(ctx context.Context, compared []string) error {
	if len(compared) == 0 {
		return nil
	}
	seen, err := a.seen(ctx)
	if err == nil && seen != parseSeen(compared) {
		err = ErrMoved
	}
	return err
}

// rolledBack returns the NewStore of a store that does not continue from what was seen of it.
func rolledBack(epoch string, seen, now lineage.Seen, since time.Time) *tracker.NewStore {
	at := func(revision uint64) string {
		suffix := fmt.Sprintf("@%d", revision)
		return epoch[:min(len(epoch), lineage.MaxEpoch-len(suffix))] + suffix
	}
	return &tracker.NewStore{Known: at(seen.Most), Announced: at(now.At), Since: since}
}

// setPoint records the position of this session's store.
func (a *peerStore) setPoint(now lineage.Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Word == "" {
		return
	}
	if a.point.Word == now.Word {
		now.Most = max(now.Most, a.point.Most)
	}
	a.point = now
}

// reached records that the store has reached the revision of a message.
func (a *peerStore) reached(said progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.point = after(a.point, said)
}

// see returns the operations that record that a message was seen. What is seen of a strange store is recorded once it
// is accepted.
func (a *peerStore) see(ctx context.Context, said progress) ([]store.Op, error) {
	if a == nil || a.kept == nil {
		return nil, nil
	}
	a.mu.Lock()
	point, strange := after(a.point, said), a.strange != nil
	a.mu.Unlock()
	if strange || point.Word == "" {
		return nil, nil
	}
	return a.kept.See(ctx, point)
}

// settle begins a session, with a strange store or with the known one.
func (a *peerStore) settle(strange *tracker.NewStore) {
	defer a.pulse.Beat()
	a.mu.Lock()
	defer a.mu.Unlock()
	if strange != nil && a.strange != nil && a.strange.Known == strange.Known {
		strange.Since = a.strange.Since
	}
	if strange != nil && a.ledger != nil {
		a.ledger.Forget(a.now())
	}
	a.strange, a.compared, a.parts = strange, map[resources.Type]bool{}, map[resources.Type]bool{}
}

// isStrange reports whether all removals by comparison must be held.
func (a *peerStore) isStrange() bool { return a.status() != nil }

// status returns the strange store, or nil if the store is the known one.
func (a *peerStore) status() *tracker.NewStore {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.strange
}

// whole records that a type was compared in full.
func (a *peerStore) whole(t resources.Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.compared[t] = true
}

// hasWhole reports whether a type was compared in full in this session.
func (a *peerStore) hasWhole(t resources.Type) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.compared[t]
}

// review forgets what was here before lists that are done, and accepts the strange store once every type was compared
// and nothing is held.
func (a *peerStore) review(ctx context.Context) error {
	if err := a.forgetBefore(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.strange == nil || a.ledger.Holding(a.from) {
		return nil
	}
	for _, d := range resources.Descriptors() {
		if a.from.Carries(d) && !a.compared[d.Type] {
			return nil
		}
	}
	if err := a.kept.Accept(ctx, a.announced); err != nil {
		return err
	}
	if err := a.record(ctx); err != nil {
		return err
	}
	a.log.Info("accepted the store of the "+a.peer()+": it lacks nothing that this "+a.here()+" has of it",
		"epoch", a.announced)
	a.strange = nil
	a.pulse.Beat()
	return nil
}

// record stores how much was seen of a store that was strange. The caller holds a.mu.
func (a *peerStore) record(ctx context.Context) error {
	if a.point.Word == "" || a.store == nil {
		return nil
	}
	ops, err := a.kept.See(ctx, a.point)
	if err == nil && len(ops) > 0 {
		_, err = a.store.Apply(ctx, store.Batch{Ops: ops})
	}
	return err
}

// epochOf reads the epoch from a header; empty if there is none or it is too long.
func epochOf(header metadata.MD) string {
	values := header.Get(metadataEpoch)
	if len(values) != 1 || len(values[0]) > lineage.MaxEpoch {
		return ""
	}
	return values[0]
}
