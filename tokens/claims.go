package tokens

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Audience is the purpose of a token. A token has exactly one.
type Audience string

// The audiences.
const (
	// AudienceJoin is for a zone that joins the global, once.
	AudienceJoin Audience = "causeway-join"
	// AudienceZone is for a zone without a zone certificate that speaks KDS.
	AudienceZone Audience = "causeway-zone"
	// AudienceDataplane is for a proxy that requests its configuration and identity from its zone.
	AudienceDataplane Audience = "causeway-dataplane"
	// AudienceUser is for a person or program that uses the HTTP API.
	AudienceUser Audience = "causeway-user"
)

// Claims are the contents of a token. Only its issuer can change them.
type Claims struct {
	// ID is unique. Revocation names it.
	ID      string
	Subject string
	Audience
	IssuedAt, NotBefore, Expires time.Time
	Scopes                       []string
	// Zone is set in join and zone tokens.
	Zone string
	// Mesh is set in dataplane tokens, with any of Dataplane (a name), Workload and Labels. The Dataplane must match
	// them.
	Mesh, Dataplane, Workload string
	Labels                    map[string]string
	// Groups are set in user tokens.
	Groups []string
}

const (
	// maxTokenBytes bounds what is parsed before the peer is authenticated.
	maxTokenBytes = 8 << 10
	// MaxLifetime is the longest time for which a token is issued.
	MaxLifetime = 10 * 365 * 24 * time.Hour
	// skew is the maximum difference between the clocks of replicas.
	skew = 30 * time.Second
)

// payload is Claims in the encoding of the token.
type payload struct {
	jwt.RegisteredClaims
	Scopes    []string          `json:"scopes,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Mesh      string            `json:"mesh,omitempty"`
	Dataplane string            `json:"dataplane,omitempty"`
	Workload  string            `json:"workload,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Groups    []string          `json:"groups,omitempty"`
}

func payloadOf(c *Claims) *payload {
	return &payload{
		RegisteredClaims: jwt.RegisteredClaims{
			ID: c.ID, Subject: c.Subject, Audience: jwt.ClaimStrings{string(c.Audience)},
			IssuedAt: jwt.NewNumericDate(c.IssuedAt), NotBefore: jwt.NewNumericDate(c.NotBefore),
			ExpiresAt: jwt.NewNumericDate(c.Expires),
		},
		Scopes: c.Scopes, Zone: c.Zone, Mesh: c.Mesh, Dataplane: c.Dataplane, Workload: c.Workload, Labels: c.Labels,
		Groups: c.Groups,
	}
}

// claims is the inverse of payloadOf, for a verified payload.
func (p *payload) claims(a Audience) Claims {
	c := Claims{
		ID: p.ID, Subject: p.Subject, Audience: a, Expires: p.ExpiresAt.Time,
		Scopes: p.Scopes, Zone: p.Zone, Mesh: p.Mesh, Dataplane: p.Dataplane, Workload: p.Workload, Labels: p.Labels,
		Groups: p.Groups,
	}
	if p.IssuedAt != nil {
		c.IssuedAt = p.IssuedAt.Time
	}
	if p.NotBefore != nil {
		c.NotBefore = p.NotBefore.Time
	}
	return c
}

// check validates the claims that the signature protects.
func (p *payload) check(a Audience, now time.Time) error {
	switch {
	case p.ID == "" || p.ExpiresAt == nil:
		return fmt.Errorf("%w: it has no id or no expiry", ErrMalformed)
	case len(p.Audience) != 1 || p.Audience[0] != string(a):
		return ErrAudience
	case !now.Before(p.ExpiresAt.Time):
		return fmt.Errorf("%w, by this server's clock, which says %s", ErrExpired, now.UTC().Format(time.RFC3339))
	case p.NotBefore != nil && now.Before(p.NotBefore.Time):
		return fmt.Errorf("%w, by this server's clock, which says %s", ErrNotYet, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// Reason returns a word for err in logs, metrics and the audit log: one for each error that refuses a token, otherwise
// "other".
func Reason(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{ErrMalformed, "malformed"}, {ErrAlgorithm, "algorithm"}, {ErrUnknownKey, "unknown-key"}, {ErrSignature, "signature"},
		{ErrExpired, "expired"}, {ErrNotYet, "not-yet"}, {ErrAudience, "audience"}, {ErrRevoked, "revoked"},
		{ErrUsed, "used"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "other"
}
