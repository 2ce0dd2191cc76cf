package resources

// ZoneClaim says which of the servers that share a store has the session of the zone that it is named after. It lives in that
// store only, as a Secret does. Whoever writes for a zone is held against it under the store's write lock.
type ZoneClaim struct {
	// Replica is the server's instance; empty when the zone shall connect anew.
	Replica string `json:"replica,omitempty"`
	// Resync asks the next session to compare everything.
	Resync bool `json:"resync,omitempty"`
}
