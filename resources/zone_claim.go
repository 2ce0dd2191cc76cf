package resources

// ZoneClaim records which of the servers that share a store holds the session of a zone. The claim has the zone's name.
// It exists only in that store, like a Secret. Every write for the zone is checked against it under the store's write
// lock.
type ZoneClaim struct {
	// Replica is the instance of the server. It is empty if the zone must reconnect.
	Replica string `json:"replica,omitempty"`
	// Resync makes the next session compare all resources.
	Resync bool `json:"resync,omitempty"`
}
