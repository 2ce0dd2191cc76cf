package kds

import "errors"

var (
	// ErrNoClientID reports that the peer did not name its zone in the metadata key client-id.
	ErrNoClientID = errors.New("the metadata has no client-id: send the zone's name")
	// ErrZoneName reports that the zone's name is not a DNS label of at most 63 characters.
	ErrZoneName = errors.New("not a zone name: want at most 63 lower-case letters, digits and dashes")
	// ErrZoneDisabled reports that the zone exists and is disabled, so that nothing is synchronised with it.
	ErrZoneDisabled = errors.New("the zone is disabled: enable it on the global")
	// ErrZoneDeleted reports that the zone was deleted while it was connected.
	ErrZoneDeleted = errors.New("the zone was deleted on the global")
	// ErrUnauthenticated reports that the peer has not proved which zone it is, or that its proof no longer holds.
	ErrUnauthenticated = errors.New("not proven")
	// ErrNotAllowed reports that the peer is authenticated and not authorised for this.
	ErrNotAllowed = errors.New("not allowed")
	// ErrRequest reports that the peer's request is malformed.
	ErrRequest = errors.New("the request is not valid")
	// ErrFrame reports that a peer's compressed frame is not valid, holds too much, or was not asked for.
	ErrFrame = errors.New("the peer's compressed frame is refused")
	// ErrFenced reports that a newer session of the same zone took over; this one can no longer write.
	ErrFenced = errors.New("a newer session of this zone took over")
	// ErrSendTimeout reports that the peer did not read a message in time.
	ErrSendTimeout = errors.New("the peer does not read")
	// ErrNoAnswer reports that the peer left a message unanswered for too long while more waited for it.
	ErrNoAnswer = errors.New("the peer does not answer")
	// ErrTooManyTypes reports that the peer subscribes to more unknown types than any peer has.
	ErrTooManyTypes = errors.New("asks for too many unknown types")
	// ErrTooManyStreams reports that the zone holds more streams open than any zone needs.
	ErrTooManyStreams = errors.New("too many streams")
	// ErrDraining reports that this server is shutting down; the peer should reconnect.
	ErrDraining = errors.New("this server is shutting down: connect again")
	// ErrMoved reports that the global has received more of the zone's store than the zone compared its store with: the
	// zone should connect again.
	ErrMoved = errors.New("more was received of the zone meanwhile: connect again")
	// ErrPastWindow reports that the peer is behind the changelog's window and cannot take a full list in the middle of
	// a stream. A new stream begins with one.
	ErrPastWindow = errors.New("the peer is behind the changelog's window: open a new stream")
	// ErrStreamEnded reports that one of the session's streams ended: the peer closed it, or the connection broke, or
	// the peer was silent for too long.
	ErrStreamEnded = errors.New("the stream ended")

	// errUndecodable reports that a peer's resource does not have the form of its type.
	errUndecodable = errors.New("cannot be decoded")
)
