package main

import "time"

// The states of a connection, as tables show them.
const (
	stateOnline  = "online"
	stateOffline = "offline"
	stateUnseen  = "not seen" // by the server that was asked, since it started: what was before it does not know
	stateUnknown = "unknown"
	stateHidden  = "hidden" // from who may not read the insight
)

// subscription is one connection in an insight. It is open while DisconnectTime is nil.
type subscription struct {
	ConnectTime    time.Time  `json:"connectTime"`
	DisconnectTime *time.Time `json:"disconnectTime"`
}

// connectionState says whether a zone or a proxy is connected, and since when that is so: it is online when any of its
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
