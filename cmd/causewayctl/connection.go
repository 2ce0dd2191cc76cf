package main

import "time"

// The states of a connection, as tables show them.
const (
	stateOnline  = "online"
	stateOffline = "offline"
	stateUnseen  = "not seen" // by this server, since it started: it does not know what was before
	stateUnknown = "unknown"
	stateHidden  = "hidden" // the caller may not read the insight
)

// subscription is one connection in an insight. It is open while DisconnectTime is nil.
type subscription struct {
	ConnectTime    time.Time  `json:"connectTime"`
	DisconnectTime *time.Time `json:"disconnectTime"`
}

// connectionState reports whether a zone or a proxy is connected, and since when. It is online if any of its
// subscriptions has not ended.
func connectionState(subscriptions []subscription) (state string, since time.Time) {
	state = stateUnseen
	for _, s := range subscriptions {
		switch {
		case s.DisconnectTime == nil:
			return stateOnline, s.ConnectTime
		case state == stateUnseen || s.DisconnectTime.After(since):
			state, since = stateOffline, *s.DisconnectTime
		}
	}
	return state, since
}
