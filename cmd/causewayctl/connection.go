package main

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// The states of a connection, as tables show them.
const (
	stateOnline  = "online"
	stateOffline = "offline"
	stateUnseen  = "not seen" // by this server since it started: earlier connections are unknown
	stateUnknown = "unknown"
	stateHidden  = "hidden" // the caller may not read the insight
)

// subscription is one connection in an insight. It is open while it has no time of its end.
type subscription interface {
	GetConnectTime() *timestamppb.Timestamp
	GetDisconnectTime() *timestamppb.Timestamp
}

// connectionState reports whether a zone or a proxy is connected, and since when. It is online if any of its
// subscriptions has not ended.
func connectionState[S subscription](subscriptions []S) (state string, since time.Time) {
	state = stateUnseen
	for _, s := range subscriptions {
		switch end := s.GetDisconnectTime(); {
		case end == nil:
			return stateOnline, timeOf(s.GetConnectTime())
		case state == stateUnseen || end.AsTime().After(since):
			state, since = stateOffline, end.AsTime()
		}
	}
	return state, since
}

// timeOf returns the zero time for an absent one.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
