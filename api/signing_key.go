package api

import "time"

// SigningKeyList is the response to all requests about keys: `GET /_keys` and the POST requests below it.
type SigningKeyList struct {
	// New is the ID of the created key, or empty if none was created.
	New string `json:"new,omitempty"`
	// Keys are the keys of the requested purpose, or all.
	Keys []SigningKey `json:"keys"`
}

// SigningKey is one key that a server signs with, or has signed with, without its secret part.
type SigningKey struct {
	// Purpose is token-signing, on the global also zone-ca, and in zones identity:<mesh> or identity:<mesh>:<trust
	// domain>.
	Purpose string `json:"purpose"`
	ID      string `json:"id"`
	// State is signing; accepted, if signatures of the key are valid until it is retired; or next, for an authority
	// that will sign once the peers trust it.
	State     string    `json:"state"`
	Algorithm string    `json:"algorithm"`
	Created   time.Time `json:"creationTime"`
	// Expires is nil for a key that is valid until it is retired.
	Expires *time.Time `json:"expirationTime,omitempty"`
	// Uses counts the users of the key. It is nil if the number is unknown.
	Uses *int `json:"uses,omitempty"`
	// WaitsFor lists the peers that must trust the authority before it signs. Unaware lists those that were away when
	// it began to sign.
	WaitsFor []string `json:"waitsFor,omitempty"`
	Unaware  []string `json:"unaware,omitempty"`
	// Provided means that an operator provided the key.
	Provided bool `json:"provided,omitempty"`
}
