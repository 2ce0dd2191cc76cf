package api

import (
	"encoding/json"
	"time"
)

// ShadowReport is the response to `GET /_report/shadow`: the clients that would be denied if every allowWithShadowDeny
// were a deny.
type ShadowReport struct {
	// Items are ordered from the most recent.
	Items []ShadowDenial `json:"items"`
	// Dropped counts requests of any kind that are no longer distinguished, for lack of room.
	Dropped uint64 `json:"dropped"`
	// Since is the time at which counting began.
	Since     time.Time   `json:"since"`
	Readiness []Readiness `json:"readiness"`
	// Unknown is the reason why nothing is known about the question. An empty list then means nothing. It is empty if
	// something is known.
	Unknown string `json:"unknown,omitempty"`
	// LeftOut counts the items and policies whose Dataplane or policy the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// ShadowDenial is one kind of request that would be denied.
type ShadowDenial struct {
	Client     string    `json:"client"`
	Inbound    string    `json:"inbound"`
	Method     string    `json:"method,omitempty"`
	PathPrefix string    `json:"pathPrefix,omitempty"`
	Policy     string    `json:"policy"`
	Count      uint64    `json:"count"`
	FirstSeen  time.Time `json:"firstSeen"`
	LastSeen   time.Time `json:"lastSeen"`
}

// DenialReport is the response to `GET /_report/denied`: the requests, and the connections on TCP, that the zone's proxies
// denied.
type DenialReport struct {
	// Items are ordered from the most recent.
	Items []Denial `json:"items"`
	// More counts the items beyond the requested size.
	More int `json:"more,omitempty"`
	// Dropped counts requests of any kind that are no longer distinguished, for lack of room.
	Dropped uint64 `json:"dropped"`
	// Since is the time since which all reports of the proxies are counted.
	Since time.Time `json:"since"`
	// Unknown is the reason why nothing is known about the question. An empty list then means nothing. It is empty if
	// something is known.
	Unknown string `json:"unknown,omitempty"`
	// LeftOut counts the items whose Dataplane, and the names of policies, that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// Denial is one kind of request that was denied.
type Denial struct {
	// Client is the verified SPIFFE ID; empty if there was none.
	Client  string `json:"client"`
	Inbound string `json:"inbound"`
	// Method and path are empty on TCP. Path excludes the query. PathPrefix, the first segment, stands for paths that
	// are not kept individually.
	Method     string `json:"method,omitempty"`
	Path       string `json:"path,omitempty"`
	PathPrefix string `json:"pathPrefix,omitempty"`
	// Policy is the KRI of the policy that denied, or the name of a decision that no policy made.
	Policy   string    `json:"policy"`
	Count    uint64    `json:"count"`
	LastSeen time.Time `json:"lastSeen"`
}

// Readiness reports whether the shadow denials of a policy can be enforced without denying a client.
type Readiness struct {
	Policy string `json:"policy"`
	Safe   bool   `json:"safe"`
	Text   string `json:"text"`
}

// Suggestion is the response to `GET /_suggest/permissions`: permissions that allow what was seen allowed, by client,
// method and path, and their effect on everything else that was seen.
type Suggestion struct {
	// Resources are MeshTrafficPermissions in Universal form: one for each inbound that was called, so that what a
	// client may do on one inbound is not allowed on another; or one that allows nothing.
	Resources []json.RawMessage `json:"resources"`
	// Observed is the number of requests, and connections on TCP, that the suggestion is based on.
	Observed uint64    `json:"observed"`
	Since    time.Time `json:"since"`
	Warnings []string  `json:"warnings"`
	// Unknown is the reason why the clients of the Dataplane are unknown; then there are no resources. It is empty if
	// they are known.
	Unknown string `json:"unknown,omitempty"`
	// LeftOut counts the policies that the warnings do not name because the caller may not read them.
	LeftOut int `json:"leftOut,omitempty"`
}
