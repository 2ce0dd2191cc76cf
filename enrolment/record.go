package enrolment

import (
	"slices"
	"time"
)

// Limits of what is kept of one zone; the oldest go first, except tokens, of which no more are issued than MaxZoneTokens.
const (
	maxCertificates = 8
	MaxZoneTokens   = 32
	maxJoins        = 16
)

// Record is what the global keeps of a zone that was let in by a credential, or may be. Only what stands here is good:
// withdrawing a credential is taking it out.
type Record struct {
	Zone string `json:"zone"`
	// ID is the zone's own, once it has joined.
	ID           string              `json:"id,omitempty"`
	Certificates []IssuedCertificate `json:"certificates,omitempty"`
	Tokens       []IssuedToken       `json:"tokens,omitempty"`
	Joins        []IssuedJoin        `json:"joins,omitempty"`
	// Store names the zone's store with which the global has come to terms last; empty for none.
	Store string `json:"store,omitempty"`
	// RevokedAt is when all credentials were withdrawn last; tokens that others issued before are not good.
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Draining: the zone is about to be deleted, since DrainingAt, which older servers leave out. DeletedAt: it was.
	Draining   bool      `json:"draining,omitempty"`
	DrainingAt time.Time `json:"drainingAt,omitzero"`
	DeletedAt  time.Time `json:"deletedAt,omitzero"`
}

// deletionTime is how long a deletion keeps a zone out. One that takes longer has ended with the server that was at it.
const deletionTime = time.Minute

// Leaving reports whether the zone is being deleted: whoever began it is still at it, as far as that can be known.
func (m *Record) Leaving(now time.Time) bool {
	return m.Draining && (m.DrainingAt.IsZero() || now.Sub(m.DrainingAt).Abs() < deletionTime)
}

// IssuedCertificate is a certificate that the zone may connect with.
type IssuedCertificate struct {
	Serial    string    `json:"serial"`
	Authority string    `json:"authority"`
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires"`
	// Stored: the zone has said that it keeps this one.
	Stored bool `json:"stored"`
}

// IssuedToken is a zone token.
type IssuedToken struct {
	ID      string    `json:"id"`
	Scopes  []string  `json:"scopes"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// IssuedJoin is the token of a join string.
type IssuedJoin struct {
	ID      string    `json:"id"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Rejoin: it may take the place of a server that has joined before.
	Rejoin bool `json:"rejoin,omitempty"`
	// UsedBy is the SHA-256 of the public key that it was traded for; empty until then.
	UsedBy string `json:"usedBy,omitempty"`
}

// Joined reports whether a server holds a certificate of this zone.
func (m *Record) Joined() bool { return m.ID != "" && len(m.Certificates) > 0 }

// Blank reports whether this says no more than that the zone is about to be deleted.
func (m *Record) Blank() bool {
	return m.ID == "" && len(m.Certificates)+len(m.Tokens)+len(m.Joins) == 0 && m.RevokedAt.IsZero() && m.DeletedAt.IsZero()
}

// Newest is the certificate that the zone is known to keep; nil when it keeps none.
func (m *Record) Newest() *IssuedCertificate {
	for i := range slices.Backward(m.Certificates) {
		if c := &m.Certificates[i]; c.Stored {
			return c
		}
	}
	return nil
}

// Certificate is the one of a serial number; nil when the zone has none such.
func (m *Record) Certificate(serial string) *IssuedCertificate {
	for i := range m.Certificates {
		if m.Certificates[i].Serial == serial {
			return &m.Certificates[i]
		}
	}
	return nil
}

// Withdraw takes all credentials away and returns how many there were. What was issued by a clock that was ahead of now is over all the same.
func (m *Record) Withdraw(now time.Time) (certificates, tokens, joins int) {
	certificates, tokens = len(m.Certificates), len(m.Tokens)
	for _, j := range m.Joins {
		if j.UsedBy == "" {
			joins++
		}
	}
	at := now.UTC()
	for _, t := range m.Tokens {
		at = later(at, t.Issued)
	}
	for _, c := range m.Certificates {
		at = later(at, c.Issued)
	}
	m.Certificates, m.Tokens, m.Joins, m.RevokedAt = nil, nil, nil, at
	return certificates, tokens, joins
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Withdrawn is when the zone's credentials were last taken back; zero for never.
func (m *Record) Withdrawn() time.Time {
	if m.DeletedAt.After(m.RevokedAt) {
		return m.DeletedAt
	}
	return m.RevokedAt
}

// DependsOn are the authorities of the certificate that the zone keeps, or of all that it may keep as long as it has not said.
func (m *Record) DependsOn(now time.Time) map[string]bool {
	out := map[string]bool{}
	if kept := m.Newest(); kept != nil && now.Before(kept.Expires) {
		out[kept.Authority] = true
		return out
	}
	for _, c := range m.Certificates {
		if now.Before(c.Expires) {
			out[c.Authority] = true
		}
	}
	return out
}

// Tidy drops what time has made worthless, by the clock for forgetting.
func (m *Record) Tidy(now time.Time) {
	m.Certificates = slices.DeleteFunc(m.Certificates, func(c IssuedCertificate) bool { return now.After(c.Expires) })
	for at := 0; len(m.Certificates) > maxCertificates; {
		if kept := m.Newest(); kept != nil && kept.Serial == m.Certificates[at].Serial {
			at++ // without it the zone could not come back
		}
		m.Certificates = slices.Delete(m.Certificates, at, at+1)
	}
	m.Tokens = slices.DeleteFunc(m.Tokens, func(t IssuedToken) bool { return now.After(t.Expires) })
	m.Joins = slices.DeleteFunc(m.Joins, func(j IssuedJoin) bool { return now.After(j.Expires) })
	if extra := len(m.Joins) - maxJoins; extra > 0 {
		m.Joins = slices.Delete(m.Joins, 0, extra)
	}
}

// Clone returns a copy that may be changed; of nil, the record of a zone that nothing is known of.
func (m *Record) Clone(zone string) *Record {
	if m == nil {
		return &Record{Zone: zone}
	}
	c := *m
	c.Certificates, c.Tokens, c.Joins = slices.Clone(m.Certificates), slices.Clone(m.Tokens), slices.Clone(m.Joins)
	return &c
}
