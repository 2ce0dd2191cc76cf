package api

import "time"

// ReplicaList is the response to `GET /_replicas`. Of a global, it has itself and the globals that share its store, in
// order of arrival, so that the first leads; one that its store does not list yet comes first. Of a server whose replicas
// choose one by a Lease, it has that one, and then those that wait. Any other server is alone in it.
type ReplicaList struct {
	Items []Replica `json:"items"`
	// Unknown says why it is unknown which other replicas there are; empty if that is known.
	Unknown string `json:"unknown,omitempty"`
}

// Replica is one server among those that share a store, or that stand in for each other.
type Replica struct {
	// Instance identifies this run of the server.
	Instance string `json:"instance"`
	// Addresses are the addresses at which zones reach it.
	Addresses []string  `json:"addresses"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	// Revision is the store's revision that it has reached, as of about a second ago.
	Revision uint64 `json:"revision"`
	// Zones counts the zones that have a session with it.
	Zones int `json:"zones"`
	// Leads means that it does the work that only one replica may do.
	Leads bool `json:"leads"`
	// Lease is the Lease in Kubernetes by which replicas choose the one that serves; empty for those that all serve. A
	// replica that does not lead waits then: Instance is the name of its pod, and Started when the pod was created.
	Lease string `json:"lease,omitempty"`
	// Ready reports whether the pod of a replica with a Lease is ready. One that is not takes no lead.
	Ready bool `json:"ready,omitempty"`
	// Since is, of a replica with a Lease, since when it leads, or since when its pod is ready or not. Nil if that is
	// unknown.
	Since *time.Time `json:"since,omitempty"`
	// Unheard is since when the responding replica receives nothing from this one; the other fields are as of then. Nil
	// while it receives.
	Unheard *time.Time `json:"unheard,omitempty"`
	// WhyUnheard is the reason, while Unheard is set.
	WhyUnheard string `json:"whyUnheard,omitempty"`
	// Asked means that this replica is the one that responds.
	Asked bool         `json:"asked"`
	Store ReplicaStore `json:"store"`
}

// ReplicaStore is the state of a replica's store.
type ReplicaStore struct {
	// Kind is bolt or etcd.
	Kind string `json:"kind"`
	// Reachable is nil for other replicas while the one that responds cannot reach the store.
	Reachable *bool `json:"reachable,omitempty"`
	// Writable reports whether the store accepts writes. A full store can be read but refuses them. It is nil if
	// Reachable is.
	Writable *bool `json:"writable,omitempty"`
	// Error is the reason why the store rejects writes. It is set only for the replica that responds.
	Error string `json:"error,omitempty"`
}
