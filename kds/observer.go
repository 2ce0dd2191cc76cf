package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// EventKind says what happened.
type EventKind uint8

// What an Observer hears of.
const (
	// SessionStarted: a zone's session began. SessionEnded: it ended, with Err as the reason.
	SessionStarted EventKind = iota
	SessionEnded
	// StreamOpened: one of the session's streams began.
	StreamOpened
	// HealthChecked: the zone called HealthCheck.
	HealthChecked
	// Sent: a message left. Acknowledged, Rejected: the peer's answer to one; Rejected has the peer's Refusals.
	Sent
	Acknowledged
	Rejected
	// Received: a message was applied, durably; Refusals is what of it was not.
	Received
	// UnknownType: the peer speaks of a type that this registry does not have.
	UnknownType
	// Withheld: resources that cannot be sent to this peer, with reasons in Refusals.
	Withheld
	// Forbidden: the peer sent resources of a type that does not travel this way, or that no server tells of; none was taken.
	Forbidden
	// Reported: the zone said how far its proxies are.
	Reported
	// Held: a complete list would remove too much; its removals wait for an operator.
	Held
)

// Event is one thing that happened in a session. Fields that do not apply are zero.
type Event struct {
	Kind EventKind
	// Time is set for sessions, health checks, messages that left and their answers.
	Time time.Time
	// Zone is the zone's end of the session, Session its number on this server.
	Zone    string
	Session uint64
	// Peer is what the peer said of itself, once it has.
	Peer      *Peer
	Direction exchange.Direction
	Type      resources.Type
	// Resources and Removed count what the message carried, Written what the store took of it.
	Resources, Removed, Written int
	// Bytes is the size of the resources that were sent; Age how old the oldest change is that was acknowledged, zero for lists.
	Bytes int
	Age   time.Duration
	// Revision is the sender's; zero when the peer does not say.
	Revision uint64
	Refusals []tracker.Refusal
	Err      error
}

// Observer hears what happens in sessions. It is called on their goroutines: it must be quick, must not block and must
// not call back.
type Observer interface {
	Observe(Event)
}

// Peer is what a server says of itself in its first request.
type Peer struct {
	// Instance is its control-plane-id, Version its version and Config its configuration as text.
	Instance, Version, GitTag, GitCommit, BuildDate, Config string
	Features                                                exchange.Features
	// AuthTokenProvided: the metadata had an authorization.
	AuthTokenProvided bool
}

// observers passes events on; nil does nothing.
type silent struct{}

func (silent) Observe(Event) {}
