package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// SyncStatus is the status of the sync with one peer, as servers show it.
type SyncStatus struct {
	// Zone is the zone of the sync.
	Zone      string `json:"zone"`
	Connected bool   `json:"connected"`
	// Since is the time when the session began, or the last one ended; zero if there was none since the server started.
	Since time.Time `json:"since,omitzero"`
	// Unheard is set if it is unknown whether the zone is connected: another replica had its session, of which this one
	// has not heard since Since.
	Unheard bool `json:"unheard,omitempty"`
	// WhyUnheard is the reason why it has not, while Unheard is set.
	WhyUnheard string `json:"whyUnheard,omitempty"`
	// OutdatedSince, on a global, is since when it does not hear its store, and WhyOutdated why: others may have written,
	// and the zone may lack resources that are unknown here. Zero while it hears it.
	OutdatedSince time.Time `json:"outdatedSince,omitzero"`
	WhyOutdated   string    `json:"whyOutdated,omitempty"`
	// Started is the time when this server started: what was before is unknown.
	Started time.Time `json:"started,omitzero"`
	// Reported, on the global, is the time of the zone's last report on its proxies; zero if there is none.
	Reported time.Time  `json:"reported,omitzero"`
	Types    []TypeSync `json:"types"`
	// Revision stands for this status: it is another one once anything but LagSeconds is. Empty if nobody asked for it.
	Revision string `json:"revision,omitempty"`
	// Over are the limits that the peer has met: what exceeds them is refused, or not recorded.
	Over []OverLimit `json:"over,omitempty"`
	// NewStore, in a zone and in its last report to the global, is set while the global's store is not the known one.
	NewStore *NewStore `json:"newStore,omitempty"`
	// NewZoneStore, on the global, is set while the zone's store is not the known one: nothing is deleted for what that
	// store lacks.
	NewZoneStore *NewStore `json:"newZoneStore,omitempty"`
	// Replaced, in a zone and in its last report to the global, is what an unknown store replaced in the zone in the
	// last days.
	Replaced *Replaced `json:"replaced,omitempty"`
	// HeldByZone, on the global, counts the deletions that the zone holds, by type, from its last report.
	HeldByZone map[resources.Type]int `json:"heldByZone,omitempty"`
}

// TypeSync is one type in one direction.
type TypeSync struct {
	Type resources.Type `json:"type"`
	// Direction is toZone or toGlobal.
	Direction string `json:"direction"`
	// Revision is the sender's newest that concerns the type, Acknowledged the one up to which the receiver has
	// answered. Both are zero if the peer sends and its messages have no revisions.
	Revision     uint64 `json:"revision"`
	Acknowledged uint64 `json:"acknowledged"`
	// LagRevisions and LagSeconds are zero while the receiver lacks nothing.
	LagRevisions uint64  `json:"lagRevisions"`
	LagSeconds   float64 `json:"lagSeconds"`
	// LagUnknown is set if the sender is offline, or sends no revisions, so that this server does not know what the
	// receiver lacks.
	LagUnknown bool `json:"lagUnknown,omitempty"`
	// Sent and Acked count messages since this server started.
	Sent    uint64            `json:"sent"`
	Acked   uint64            `json:"acked"`
	Refused []RefusedResource `json:"refused"`
	Held    *HeldDeletions    `json:"held,omitempty"`
}

// RefusedResource is one resource that the receiver refused, or that the sender cannot send.
type RefusedResource struct {
	// KRI is empty for a peer's resource that could not be decoded.
	KRI    string    `json:"kri"`
	Name   string    `json:"name"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// By is the side that refuses: "peer" or "self".
	By string `json:"by"`
}

// HeldDeletions are deletions that the mass-deletion guard holds. Names are at most MaxHeldNames of them.
type HeldDeletions struct {
	Count int       `json:"count"`
	Since time.Time `json:"since"`
	Names []string  `json:"names"`
	// Mark stands for exactly these deletions: Ledger.Accept takes it, so that nobody accepts what they have not seen.
	Mark string `json:"mark"`
}

// MaxHeldNames bounds the names in HeldDeletions and Replaced.
const MaxHeldNames = 100

// Mark sets Revision.
func (s *SyncStatus) Mark() {
	whole, digest := *s, fnv.New64a()
	whole.Revision, whole.Types = "", slices.Clone(s.Types)
	var text []byte
	for i := range whole.Types {
		one := &whole.Types[i]
		for j := range one.Refused { // there may be thousands, which JSON takes long for
			r := &one.Refused[j]
			text = strconv.AppendInt(append(strconv.AppendInt(text[:0], int64(i), 10), 0), r.Since.UnixNano(), 10)
			for _, field := range []string{r.KRI, r.Name, r.Reason, r.By} {
				text = append(append(text, 0), field...)
			}
			_, _ = digest.Write(append(text, 0)) // never fails
		}
		one.Refused, one.LagSeconds = nil, 0 // the lag grows without a change
	}
	raw, err := json.Marshal(&whole)
	if err != nil { // a time out of range: such a status changes with each look
		raw = fmt.Append(nil, err, time.Now())
	}
	_, _ = digest.Write(raw)
	s.Revision = fmt.Sprintf("%016x", digest.Sum64())
}

// Status returns the ledger's status, for one type or, if t is empty, for all.
func (l *Ledger) Status(zone string, t resources.Type, refusals *Refusals, s store.Reader) SyncStatus {
	l.mu.Lock()
	out := SyncStatus{Zone: zone, Connected: l.connected, Since: l.since, Unheard: l.unheard, Types: []TypeSync{}}
	if l.unheard {
		out.WhyUnheard = l.whyUnheard
	}
	lines := maps.Clone(l.lines)
	l.mu.Unlock()
	refused := refusals.byLine()
	for key := range refused {
		if lines[key] == nil {
			lines[key] = &Line{}
		}
	}
	latest, snapshot := newLatest(s), s.Snapshot()
	for key, n := range lines {
		if t != "" && key.Type != t {
			continue
		}
		n.forgetGone(snapshot)
		one := n.status(out.Connected, out.Since, l.now(), func(since uint64) uint64 { return latest.of(key.Type, since) })
		one.Type, one.Direction = key.Type, key.Direction.Label()
		one.Refused = append([]RefusedResource{}, refused[key]...)
		out.Types = append(out.Types, one)
	}
	slices.SortFunc(out.Types, func(a, b TypeSync) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Type, b.Type))
	})
	return out
}

func (n *Line) status(connected bool, since, now time.Time, latest func(since uint64) uint64) TypeSync {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := TypeSync{Revision: n.revision, Acknowledged: n.acknowledged, Sent: n.messages, Acked: n.acks,
		LagUnknown: !n.sending && (!connected || n.mute)}
	behind := n.behind
	if n.sending && (!connected || !behind.IsZero()) {
		if last := latest(n.acknowledged); last > n.acknowledged {
			out.Revision = max(out.Revision, last)
			if behind.IsZero() {
				behind = since
			}
		}
	}
	if !behind.IsZero() {
		out.LagSeconds = max(now.Sub(behind).Seconds(), 0)
		out.LagRevisions = max(out.Revision, out.Acknowledged) - out.Acknowledged
	}
	if len(n.held.keys) > 0 {
		out.Held = &HeldDeletions{Count: len(n.held.keys), Since: n.held.since, Names: []string{}, Mark: n.held.mark()}
		for key := range n.held.keys {
			out.Held.Names = append(out.Held.Names, exchange.WireName(key.Name, key.Mesh))
		}
		slices.Sort(out.Held.Names)
		out.Held.Names = out.Held.Names[:min(len(out.Held.Names), MaxHeldNames)]
	}
	return out
}

// latest finds the newest commit that concerned a type. It reads the changelog at most once.
type latest struct {
	store  store.Reader
	read   bool
	ok     bool
	floor  uint64
	newest map[resources.Type]uint64
}

func newLatest(s store.Reader) *latest { return &latest{store: s} }

// of returns the newest revision after since that concerned t, or since. Beyond the changelog's window it returns the
// store's.
func (l *latest) of(t resources.Type, since uint64) uint64 {
	if !l.read || since < l.floor {
		var commits []*store.Commit
		commits, l.ok = l.store.Notable(since)
		l.read, l.floor, l.newest = true, since, map[resources.Type]uint64{}
		for _, c := range commits {
			for _, change := range c.Changes {
				l.newest[change.Key().Type] = c.Revision
			}
		}
	}
	if !l.ok {
		return l.store.Snapshot().Revision()
	}
	return max(since, l.newest[t])
}
