package api

// Trust is the response to `GET /meshes/{mesh}/_trust`: the trust domains that a zone's proxies of the mesh trust, and
// the MeshTrusts that they refuse.
type Trust struct {
	TrustDomains []TrustDomain  `json:"trustDomains"`
	Refused      []RefusedTrust `json:"refused"`
	// LeftOut counts the refused MeshTrusts that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// TrustDomain is a trusted domain.
type TrustDomain struct {
	Name string `json:"name"`
	// Authorities counts the CA certificates that may sign for the trust domain.
	Authorities int `json:"authorities"`
}

// RefusedTrust is a refused MeshTrust.
type RefusedTrust struct {
	KRI    string `json:"kri"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}
