package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// ZoneState is what a server knows of the sync with a zone, as it tells the replicas beside it, so that each of them can answer for
// every zone.
type ZoneState struct {
	// Instance is the zone's server that has the session now, as it calls this run of itself; empty when there is none, or not yet.
	Instance  string      `json:"instance,omitempty"`
	Connected bool        `json:"connected,omitempty"`
	Since     time.Time   `json:"since,omitzero"`
	Lines     []LineState `json:"lines,omitempty"`
	Refusals  []Refusal   `json:"refusals,omitempty"`
	Over      []OverLimit `json:"over,omitempty"`
	Report    *Report     `json:"report,omitempty"`
	// Reported is when the server got the report.
	Reported time.Time `json:"reported,omitzero"`
}

// LineState is one type in one direction. Names are short: there is one for each type, each way, of each zone.
type LineState struct {
	Direction    exchange.Direction `json:"d,omitempty"`
	Type         resources.Type     `json:"t"`
	Sending      bool               `json:"s,omitempty"`
	Revision     uint64             `json:"r,omitempty"`
	Acknowledged uint64             `json:"a,omitempty"`
	Behind       time.Time          `json:"b,omitzero"`
	Messages     uint64             `json:"m,omitempty"`
	Acks         uint64             `json:"k,omitempty"`
	Held         []HeldState        `json:"h,omitempty"`
	HeldSince    time.Time          `json:"hs,omitzero"`
}

// HeldState is one removal that waits for an operator.
type HeldState struct {
	Key      resources.Key `json:"key"`
	Revision uint64        `json:"revision"`
}

// State is what this server knows of a zone; nil when it knows nothing.
func (g *Global) State(zone string) *ZoneState {
	data := g.data(zone)
	if data == nil {
		return nil
	}
	out := &ZoneState{Instance: g.instance(zone), Refusals: data.refusals.List(), Over: data.over.list(), Report: data.report.Load()}
	if out.Report != nil {
		out.Reported = out.Report.Received
	}
	l := data.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Connected, out.Since = l.connected, l.since
	for key, n := range l.lines {
		out.Lines = append(out.Lines, n.state(key))
	}
	return out
}

// instance is what the server that has a zone's session here calls this run of itself.
func (g *Global) instance(zone string) string {
	g.mu.Lock()
	s := g.sessions[zone]
	g.mu.Unlock()
	if s == nil {
		return ""
	}
	if p := s.peer.Load(); p != nil {
		return p.Instance
	}
	return ""
}

func (n *line) state(key lineKey) LineState {
	waiting := n.holds()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := LineState{
		Direction: key.direction, Type: key.typ, Sending: n.sending, Revision: n.revision, Acknowledged: n.acknowledged,
		Behind: n.behind, Messages: n.messages, Acks: n.acks, HeldSince: waiting.since,
	}
	for k, revision := range waiting.keys {
		out.Held = append(out.Held, HeldState{Key: k, Revision: revision})
	}
	return out
}

func (s *LineState) line() *line {
	n := &line{sending: s.Sending, revision: s.Revision, acknowledged: s.Acknowledged, behind: s.Behind, messages: s.Messages, acks: s.Acks}
	if len(s.Held) > 0 {
		n.held = held{since: s.HeldSince, keys: make(map[resources.Key]uint64, len(s.Held))}
		for _, h := range s.Held {
			n.held.keys[h.Key] = h.Revision
		}
	}
	return n
}

// Adopt applies another replica's status of a zone, unless the zone has a session here.
func (g *Global) Adopt(zone string, s *ZoneState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[zone] != nil {
		return
	}
	data := g.zoneDataLocked(zone)
	lines := make(map[lineKey]*line, len(s.Lines))
	for i := range s.Lines {
		lines[lineKey{s.Lines[i].Direction, s.Lines[i].Type}] = s.Lines[i].line()
	}
	l := data.ledger
	l.mu.Lock()
	l.connected, l.since, l.lines = s.Connected, s.Since, lines
	l.mu.Unlock()
	data.refusals.replace(s.Refusals)
	data.over.replace(s.Over)
	if s.Report != nil {
		report := *s.Report
		report.Received = s.Reported
		data.report.Store(&report)
	}
}

// zoneDataLocked is what is remembered of a zone, from now on. g.mu is held.
func (g *Global) zoneDataLocked(zone string) *zoneData {
	data := g.zones[zone]
	if data == nil {
		data = &zoneData{zone: zone, ledger: newLedger(), known: g.config.Known.of(zone), refusals: NewRefusals(), over: &overLimits{}}
		g.zones[zone] = data
	}
	return data
}

// replace takes a list for all that is remembered.
func (f *Refusals) replace(list []Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byKey, f.ofKey, f.bytes = map[refusalKey]Refusal{}, map[resources.Key]refusalKey{}, 0
	for i := range list {
		f.keepLocked(&list[i], list[i].Since)
	}
}
