package api

import "time"

// ReplicaList is the answer to `GET /_replicas` of a global: itself and those that share its store, in order of arrival, so that the
// first leads. A global that its store does not show yet comes first.
type ReplicaList struct {
	Items []Replica `json:"items"`
}

// Replica is one global among those that share a store.
type Replica struct {
	// Instance is what this run of the server is called.
	Instance string `json:"instance"`
	// Addresses are where zones reach it.
	Addresses []string  `json:"addresses"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	// Revision is up to where it shows the store, a second ago or so.
	Revision uint64 `json:"revision"`
	// Zones counts those that have a session with it.
	Zones int `json:"zones"`
	// Leads: it does what only one may do.
	Leads bool `json:"leads"`
	// Asked: it is the one that answers.
	Asked bool         `json:"asked"`
	Store ReplicaStore `json:"store"`
}

// ReplicaStore is how a replica stands with its store.
type ReplicaStore struct {
	// Kind is bolt or etcd.
	Kind string `json:"kind"`
	// Reachable is nil for others while the one that answers does not reach the store itself.
	Reachable *bool `json:"reachable,omitempty"`
	// Error is why it is not reachable; only of the one that answers.
	Error string `json:"error,omitempty"`
}
