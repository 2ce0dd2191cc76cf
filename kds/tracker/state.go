package tracker

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// ZoneState is what a server knows of the sync with a zone, as it sends it to the other replicas, so that each of them
// can answer for every zone.
type ZoneState struct {
	// Instance is the instance name of the zone's server that has the session now; empty if there is none, or not yet.
	Instance  string      `json:"instance,omitempty"`
	Connected bool        `json:"connected,omitempty"`
	Since     time.Time   `json:"since,omitzero"`
	Lines     []LineState `json:"lines,omitempty"`
	Refusals  []Refusal   `json:"refusals,omitempty"`
	Over      []OverLimit `json:"over,omitempty"`
	Report    *Report     `json:"report,omitempty"`
	// Reported is the time when the server received the report.
	Reported time.Time `json:"reported,omitzero"`
}

// LineState is one type in one direction. JSON names are short: there is one LineState for each type, direction and
// zone.
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

// HeldState is one deletion that waits for an operator.
type HeldState struct {
	Key      resources.Key `json:"key"`
	Revision uint64        `json:"revision"`
}

// Fill adds what the ledger knows to a state.
func (l *Ledger) Fill(s *ZoneState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Connected, s.Since = l.connected, l.since
	for key, n := range l.lines {
		s.Lines = append(s.Lines, n.state(key))
	}
}

func (n *Line) state(key LineKey) LineState {
	waiting := n.holds()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := LineState{
		Direction: key.Direction, Type: key.Type, Sending: n.sending, Revision: n.revision, Acknowledged: n.acknowledged,
		Behind: n.behind, Messages: n.messages, Acks: n.acks, HeldSince: waiting.since,
	}
	for k, revision := range waiting.keys {
		out.Held = append(out.Held, HeldState{Key: k, Revision: revision})
	}
	return out
}

func (s *LineState) line(pulse *Pulse) *Line {
	n := &Line{pulse: pulse, sending: s.Sending, revision: s.Revision, acknowledged: s.Acknowledged, behind: s.Behind,
		messages: s.Messages, acks: s.Acks}
	if len(s.Held) > 0 {
		n.held = held{since: s.HeldSince, keys: make(map[resources.Key]uint64, len(s.Held))}
		for _, h := range s.Held {
			n.held.keys[h.Key] = h.Revision
		}
	}
	return n
}

// Replace replaces the ledger's content by another replica's state.
func (l *Ledger) Replace(s *ZoneState) {
	defer l.pulse.Beat()
	lines := make(map[LineKey]*Line, len(s.Lines))
	for i := range s.Lines {
		lines[LineKey{s.Lines[i].Direction, s.Lines[i].Type}] = s.Lines[i].line(l.pulse)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected, l.since, l.unheard, l.lines = s.Connected, s.Since, false, lines
}
