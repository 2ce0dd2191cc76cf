package api

import "time"

// SVIDRequest is the body of `POST /meshes/{mesh}/dataplanes/{name}/_svid`.
type SVIDRequest struct {
	// CSR is a PEM certificate signing request. Only its key matters: the identity is the Dataplane's.
	CSR string `json:"csr"`
}

// SVID is the response: the identity of a Dataplane.
type SVID struct {
	SpiffeID string `json:"spiffeId"`
	// Certificate is PEM.
	Certificate string `json:"certificate"`
	// Bundles are PEM certificates by trust domain.
	Bundles map[string]string `json:"bundles"`
	Expires time.Time         `json:"expirationTime"`
}
