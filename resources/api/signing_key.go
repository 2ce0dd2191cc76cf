package api

import "time"

// SigningKeyList is the answer to all that is asked of keys: `GET /_keys`, and what is posted below it.
type SigningKeyList struct {
	// New is the id of the key that was made; empty where none was.
	New string `json:"new,omitempty"`
	// Keys are those of the purpose that was asked for, or of all.
	Keys []SigningKey `json:"keys"`
}

// SigningKey is one key that a server signs with, or has signed with, without what is secret of it.
type SigningKey struct {
	// Purpose is token-signing, on the global zone-ca too, in zones identity:<mesh> or identity:<mesh>:<trust domain>.
	Purpose string `json:"purpose"`
	ID      string `json:"id"`
	// State is signing; accepted, when what it signed is good until it is retired; or next, for an authority that signs when it is known.
	State     string    `json:"state"`
	Algorithm string    `json:"algorithm"`
	Created   time.Time `json:"creationTime"`
	// Expires is nil for a key that is good until it is retired.
	Expires *time.Time `json:"expirationTime,omitempty"`
	// Uses counts who depends on it; nil where that is not known.
	Uses *int `json:"uses,omitempty"`
	// WaitsFor are those who are to know the authority before it signs; Unaware those who were away when it began to.
	WaitsFor []string `json:"waitsFor,omitempty"`
	Unaware  []string `json:"unaware,omitempty"`
	// Provided: an operator gave it.
	Provided bool `json:"provided,omitempty"`
}
