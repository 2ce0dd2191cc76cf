package kds

import "errors"

var (
	// ErrNoClientID: the peer did not say which zone it is, in the metadata key client-id.
	ErrNoClientID = errors.New("the metadata has no client-id: send the zone's name")
	// ErrZoneName: the zone's name is not a DNS label of at most 63 characters.
	ErrZoneName = errors.New("not a zone name: want at most 63 lower-case letters, digits and dashes")
	// ErrZoneDisabled: the zone exists and is disabled, so it gets and gives nothing.
	ErrZoneDisabled = errors.New("the zone is disabled: enable it on the global")
	// ErrZoneDeleted: the zone was deleted while it was connected.
	ErrZoneDeleted = errors.New("the zone was deleted on the global")
	// ErrUnauthenticated: the peer did not prove which zone it is, or no longer does.
	ErrUnauthenticated = errors.New("not proven")
	// ErrNotAllowed: the peer has proven who it is, and that does not allow this.
	ErrNotAllowed = errors.New("not allowed")
	// ErrRequest: the peer asked for something in a form that cannot be read.
	ErrRequest = errors.New("the request is not valid")
	// ErrFenced: a newer session of the same zone took over; this one may write no more.
	ErrFenced = errors.New("a newer session of this zone took over")
	// ErrSendTimeout: the peer did not read a message in time.
	ErrSendTimeout = errors.New("the peer does not read")
	// ErrNoAnswer: the peer left a message unanswered for too long while there was more to say.
	ErrNoAnswer = errors.New("the peer does not answer")
	// ErrTooManyTypes: the peer asks for more types that nobody knows than any peer has.
	ErrTooManyTypes = errors.New("asks for too many unknown types")
	// ErrTooManyStreams: the zone holds more streams open than any zone needs.
	ErrTooManyStreams = errors.New("too many streams")
	// ErrDraining: this server is going down; connect again.
	ErrDraining = errors.New("this server is shutting down: connect again")
	// ErrPastWindow: the peer is so far behind that the changelog does not reach back, and it cannot take a full list in the
	// middle of a stream. A new stream begins with one.
	ErrPastWindow = errors.New("the peer is behind the changelog's window: open a new stream")
	// ErrStreamEnded: the peer closed one of the session's streams.
	ErrStreamEnded = errors.New("the peer ended the stream")

	// errUndecodable: a resource from a peer is not what its type demands.
	errUndecodable = errors.New("cannot be decoded")
)
