package enrolment

import "time"

// This file has the request and response bodies of the HTTP API by which operators manage zones. The global sends the
// responses, and the command line reads them.

// JoinOrder is the body of `POST /zones/{name}/_join`.
type JoinOrder struct {
	// TTL is a Go duration. Default: 1h.
	TTL string `json:"ttl,omitempty"`
	// Rejoin lets the new server replace one that has joined before.
	Rejoin bool `json:"rejoin"`
}

// JoinOffer is the response.
type JoinOffer struct {
	Zone string `json:"zone"`
	// Join is the join string.
	Join      string    `json:"join"`
	Addresses []string  `json:"addresses"`
	CASHA256  string    `json:"caSha256"`
	Expires   time.Time `json:"expirationTime"`
}

// TokenOrder is the body of `POST /zones/{name}/_token`.
type TokenOrder struct {
	// TTL is a Go duration. Default: 720h.
	TTL    string   `json:"ttl,omitempty"`
	Scopes []string `json:"scopes"`
}

// TokenOffer is the response.
type TokenOffer struct {
	Zone    string    `json:"zone"`
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expirationTime"`
}

// Credentials is the response to `GET /zones/{name}/_credentials`. Nothing in it is secret.
type Credentials struct {
	Zone         string              `json:"zone"`
	ID           string              `json:"id,omitempty"`
	Certificates []IssuedCertificate `json:"certificates"`
	Tokens       []IssuedToken       `json:"tokens"`
	Joins        []Join              `json:"joins"`
	Revoked      *time.Time          `json:"revocationTime,omitempty"`
}

// Join is a join string without its token.
type Join struct {
	ID      string    `json:"id"`
	Expires time.Time `json:"expirationTime"`
	Used    bool      `json:"used"`
}

// Revoked is the response to `POST /zones/{name}/_revoke`: how many credentials were revoked, and whether the zone had a
// session.
type Revoked struct {
	Zone         string `json:"zone"`
	Certificates int    `json:"certificates"`
	Tokens       int    `json:"tokens"`
	Joins        int    `json:"joins"`
	Session      bool   `json:"session"`
}

// Enabled is the response to `POST /zones/{name}/_enable` and `_disable`.
type Enabled struct {
	Zone    string `json:"zone"`
	Enabled bool   `json:"enabled"`
	Changed bool   `json:"changed"`
}

// Deleted is the response to `POST /zones/{name}/_delete`.
type Deleted struct {
	Zone string `json:"zone"`
	// Withdrawn counts the zone's resources that were removed here, and therefore in other zones.
	Withdrawn int `json:"withdrawn"`
}

// Candidate is a server whose certificate, from the global's own zone CA, the global rejected because its store does
// not list it.
type Candidate struct {
	Zone    string    `json:"zone"`
	ID      string    `json:"id"`
	Serial  string    `json:"serial"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expirationTime"`
	Seen    time.Time `json:"seen"`
	Reason  string    `json:"reason"`
}

// Candidates is the response to `GET /_adoptions`.
type Candidates struct {
	Items []Candidate `json:"items"`
	// LeftOut counts the candidates for zones that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
	// Since is the start of the server's knowledge. It does not know which servers other replicas have rejected.
	Since time.Time `json:"since,omitzero"`
	// Others counts the other replicas that serve.
	Others int `json:"others,omitempty"`
}

// AdoptOrder is the body of `POST /zones/{name}/_adopt`. ID names one of several servers. The response is a Candidate.
type AdoptOrder struct {
	ID string `json:"id"`
}
