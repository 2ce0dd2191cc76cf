package callers

import (
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// Verdicts of a cell.
const (
	Allow = "allow"
	Deny  = "deny"
	// Depends means that the client may do some things and not others, depending on the parts of a request in
	// DependsOn.
	Depends = "depends"
)

// Hidden stands for a policy that the caller may not read.
const Hidden = "hidden"

// Answer is the response to `GET /meshes/{mesh}/_access`: a part of the matrix of services against callers.
type Answer struct {
	// Revision is the store's revision of the policies, services and Dataplanes in the answer.
	Revision uint64    `json:"revision"`
	Services []Service `json:"services"`
	// Total counts the services that the question selects, and TotalCallers the callers.
	Total        int      `json:"total"`
	Callers      []Caller `json:"callers"`
	TotalCallers int      `json:"totalCallers"`
	// Policies are the deciders, which cells refer to by their index in this list: KRIs, Hidden, or names of decisions
	// that no policy made.
	Policies []string `json:"policies"`
	Seen     Seen     `json:"seen"`
	// Unknown lists the zones whose current state the server does not know, and since when. A zone server names no zone
	// when it does not know whether its global has newer policies.
	Unknown []Unsure `json:"unknown,omitempty"`
	// Elsewhere counts services of other zones, whose proxies this server does not know.
	Elsewhere int `json:"elsewhere,omitempty"`
	// LeftOut counts the services and Dataplanes that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// Service is one port of a MeshService, or an inbound of a Dataplane without a MeshService.
type Service struct {
	// KRI is that of the MeshService, with the port, or of the Dataplane's inbound.
	KRI       string `json:"kri"`
	Name      string `json:"name"`
	Zone      string `json:"zone,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Port is the name or the number of the service's port, or the inbound's.
	Port     string `json:"port"`
	Protocol string `json:"protocol"`
	// Proxies counts the service's proxies, and Connected those that are connected to their zone. It is absent if this
	// server does not know.
	Proxies   int  `json:"proxies"`
	Connected *int `json:"connected,omitempty"`
	// Behind counts the connected proxies that have not acknowledged everything that they should have. Until they do,
	// they may use their previous permissions.
	Behind int `json:"behind,omitempty"`
	// Cells are ordered by caller. A caller without one is denied, by the decision `default`, and did not call.
	Cells []Cell `json:"cells"`
}

// Caller is one identity.
type Caller struct {
	// SpiffeID is spelled as in certificates.
	SpiffeID string `json:"spiffeId"`
	// Zone, Namespace and Name are those of a Dataplane or MeshService with the identity. They are absent for an
	// identity that only proxies reported.
	Zone      string `json:"zone,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Proxies counts the Dataplanes with the identity.
	Proxies int `json:"proxies"`
}

// Cell is what one caller may do at one service, and what it did.
type Cell struct {
	// Caller is the caller's index in the answer's list.
	Caller  int    `json:"caller"`
	Verdict string `json:"verdict"`
	// Policy is the index of the decider. If the verdict depends, it is the first that may decide.
	Policy int `json:"policy"`
	// DependsOn names what the verdict depends on: method, path, sni, headers; or proxy, if proxies of the service
	// differ.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Shadow is the verdict if every allowWithShadowDeny were a deny; absent if it is the same. ShadowPolicy is its decider.
	Shadow       string `json:"shadow,omitempty"`
	ShadowPolicy *int   `json:"shadowPolicy,omitempty"`
	// Allowed, Denied and ShadowDenied count proxies' reports, and LastSeen is the time of the last one.
	Allowed      uint64    `json:"allowed,omitempty"`
	Denied       uint64    `json:"denied,omitempty"`
	ShadowDenied uint64    `json:"shadowDenied,omitempty"`
	LastSeen     time.Time `json:"lastSeen,omitzero"`
}

// Seen describes the basis of the counts in cells.
type Seen struct {
	// Unknown is why nothing is known of the traffic: the absence of a count then means nothing.
	Unknown string `json:"unknown,omitempty"`
	// Since is when the counting began.
	Since time.Time `json:"since,omitzero"`
	// Dropped counts requests of any kind that are no longer distinguished, for lack of room.
	Dropped uint64 `json:"dropped,omitempty"`
}

// Unsure is a reason why proxies may not use the stored permissions: those of one zone, or of all services shown.
type Unsure struct {
	Zone string `json:"zone,omitempty"`
	api.Unknown
}
