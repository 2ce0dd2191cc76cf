package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// EventKind is the kind of an Event.
type EventKind uint8

// Kinds of events.
const (
	// SessionStarted reports that a zone's session began; SessionEnded that it ended, with Err as the reason.
	SessionStarted EventKind = iota
	SessionEnded
	// StreamOpened reports that one of the session's streams began.
	StreamOpened
	// HealthChecked reports that the zone called HealthCheck.
	HealthChecked
	// Sent reports a message that was sent; Acknowledged and Rejected the peer's answer to one. Rejected has the peer's
	// Refusals.
	Sent
	Acknowledged
	Rejected
	// Received reports a message that was applied durably; Refusals lists what was not.
	Received
	// UnknownType reports a type from the peer that is not registered here.
	UnknownType
	// Withheld reports resources that cannot be sent to this peer, with reasons in Refusals.
	Withheld
	// Forbidden reports resources of a type that does not travel in this direction, or that no server sends; none was
	// applied.
	Forbidden
	// Reported reports that the zone sent its report on its proxies.
	Reported
	// Held reports that a complete list would remove too much; its deletions wait for an operator.
	Held
	// FrameRefused reports a compressed frame that could not be opened, or was not asked for, with Err as the reason.
	FrameRefused
)

// Event is an event of a session. Fields that do not apply are zero.
type Event struct {
	Kind EventKind
	// Time is set for sessions, health checks, sent messages and their answers.
	Time time.Time
	// Zone is the zone of the session, Session its number on this server.
	Zone    string
	Session uint64
	// Peer is the peer's description of itself, once it has sent one.
	Peer      *Peer
	Direction exchange.Direction
	Type      resources.Type
	// Resources and Removed count what the message carried, Written what the store changed.
	Resources, Removed, Written int
	// Bytes is the size of the resources as they were sent; Age that of the oldest change that was acknowledged, zero for
	// lists.
	Bytes int
	Age   time.Duration
	// Revision is the sender's; zero if the peer does not send it.
	Revision uint64
	Refusals []tracker.Refusal
	Err      error
}

// Observer receives the events of sessions, on their goroutines: Observe must be quick, must not block and must not
// call back.
type Observer interface {
	Observe(Event)
}

// Peer is a server's description of itself in its first request.
type Peer struct {
	// Instance is its control-plane-id, Version its version and Config its configuration as text.
	Instance, Version, GitTag, GitCommit, BuildDate, Config string
	Features                                                exchange.Features
	// AuthTokenProvided is set if the metadata had an authorization.
	AuthTokenProvided bool
}

// silent is the Observer that does nothing.
type silent struct{}

func (silent) Observe(Event) {}
