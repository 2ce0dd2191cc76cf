package api

import "time"

// DataplaneTokenRequest is the body of `POST /meshes/{mesh}/_dataplane-tokens`. It lists the token's requirements: a
// Dataplane must match every field that is set. The Dataplane must be in the namespace that the query names, or in
// none, so that a caller who may issue tokens for one namespace cannot reach others.
type DataplaneTokenRequest struct {
	Dataplane string            `json:"dataplane,omitempty"`
	Workload  string            `json:"workload,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// ValidFor is a Go duration, such as 720h. Default: 2160h.
	ValidFor string `json:"validFor,omitempty"`
}

// DataplaneToken is the response to a request for a token of a Dataplane or a ZoneIngress.
type DataplaneToken struct {
	Token string `json:"token"`
	// ID identifies the token for revocation.
	ID      string    `json:"id"`
	Expires time.Time `json:"expirationTime"`
}

// DataplaneTokenRevocation is the body of `POST /_dataplane-tokens/_revoke`, and its response.
type DataplaneTokenRevocation struct {
	ID string `json:"id"`
}
