package enrolment

import (
	"slices"
	"time"
)

// Limits of a zone's record. Beyond them the oldest entries are dropped, except tokens: at most MaxZoneTokens are
// issued.
const (
	maxCertificates = 8
	MaxZoneTokens   = 32
	maxJoins        = 16
)

// Record is what the global keeps about a zone that has or may get a credential. Only the credentials in it are valid:
// removing one revokes it.
type Record struct {
	Zone string `json:"zone"`
	// ID is the zone's own ID, once it has joined.
	ID           string              `json:"id,omitempty"`
	Certificates []IssuedCertificate `json:"certificates,omitempty"`
	Tokens       []IssuedToken       `json:"tokens,omitempty"`
	Joins        []IssuedJoin        `json:"joins,omitempty"`
	// Store is the epoch of the zone's store that the global accepted last; empty for none.
	Store string `json:"store,omitempty"`
	// RevokedAt is when all credentials were last revoked; older tokens of other issuers are invalid.
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Draining is set while the zone is being deleted, since DrainingAt, which older servers omit. DeletedAt is when it
	// was deleted.
	Draining   bool      `json:"draining,omitempty"`
	DrainingAt time.Time `json:"drainingAt,omitzero"`
	DeletedAt  time.Time `json:"deletedAt,omitzero"`
}

// deletionTime is how long a deletion keeps a zone out. A longer deletion ended with its server.
const deletionTime = time.Minute

// Leaving reports whether the zone is being deleted, as far as is known: the server that started the deletion may still
// be running it.
func (m *Record) Leaving(now time.Time) bool {
	return m.Draining && (m.DrainingAt.IsZero() || now.Sub(m.DrainingAt).Abs() < deletionTime)
}

// LeavesAt returns from when on Leaving is true by the time alone, because the clock of the server that deletes the zone is
// ahead of now; zero if it is not. m may be nil.
func (m *Record) LeavesAt(now time.Time) time.Time {
	if m == nil || !m.Draining || m.DrainingAt.Before(now) {
		return time.Time{}
	}
	return m.DrainingAt.Add(-deletionTime)
}

// IssuedCertificate is a certificate that the zone may connect with.
type IssuedCertificate struct {
	Serial    string    `json:"serial"`
	Authority string    `json:"authority"`
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires"`
	// Stored is set once the zone has confirmed that it stores the certificate.
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
	// Rejoin is set if it may replace a server that has already joined.
	Rejoin bool `json:"rejoin,omitempty"`
	// UsedBy is the SHA-256 of the public key that it was exchanged for; empty until then.
	UsedBy string `json:"usedBy,omitempty"`
}

// Joined reports whether a server holds a certificate of this zone.
func (m *Record) Joined() bool { return m.ID != "" && len(m.Certificates) > 0 }

// Blank reports whether the record holds nothing but a pending deletion.
func (m *Record) Blank() bool {
	return m.ID == "" && len(m.Certificates)+len(m.Tokens)+len(m.Joins) == 0 && m.RevokedAt.IsZero() &&
		m.DeletedAt.IsZero()
}

// Newest returns the newest certificate that the zone has confirmed, or nil.
func (m *Record) Newest() *IssuedCertificate {
	for i := range slices.Backward(m.Certificates) {
		if c := &m.Certificates[i]; c.Stored {
			return c
		}
	}
	return nil
}

// Certificate returns the certificate with a serial number, or nil if the zone has none.
func (m *Record) Certificate(serial string) *IssuedCertificate {
	for i := range m.Certificates {
		if m.Certificates[i].Serial == serial {
			return &m.Certificates[i]
		}
	}
	return nil
}

// Withdraw revokes all credentials and returns their numbers. It also covers those that a clock ahead of now issued.
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

// Withdrawn returns when the zone's credentials were last revoked, or zero.
func (m *Record) Withdrawn() time.Time {
	if m.DeletedAt.After(m.RevokedAt) {
		return m.DeletedAt
	}
	return m.RevokedAt
}

// DependsOn returns the authority of the certificate that the zone has confirmed or, if it has confirmed none, the
// authorities of all that it may have.
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

// Tidy drops what has expired, by the clock for forgetting.
func (m *Record) Tidy(now time.Time) {
	m.Certificates = slices.DeleteFunc(m.Certificates, func(c IssuedCertificate) bool { return now.After(c.Expires) })
	for at := 0; len(m.Certificates) > maxCertificates; {
		if kept := m.Newest(); kept != nil && kept.Serial == m.Certificates[at].Serial {
			at++ // without it, the zone could not reconnect
		}
		m.Certificates = slices.Delete(m.Certificates, at, at+1)
	}
	m.Tokens = slices.DeleteFunc(m.Tokens, func(t IssuedToken) bool { return now.After(t.Expires) })
	m.Joins = slices.DeleteFunc(m.Joins, func(j IssuedJoin) bool { return now.After(j.Expires) })
	if extra := len(m.Joins) - maxJoins; extra > 0 {
		m.Joins = slices.Delete(m.Joins, 0, extra)
	}
}

// Clone returns a copy that the caller may change. For nil, it returns a new record of the zone.
func (m *Record) Clone(zone string) *Record {
	if m == nil {
		return &Record{Zone: zone}
	}
	c := *m
	c.Certificates, c.Tokens, c.Joins = slices.Clone(m.Certificates), slices.Clone(m.Tokens), slices.Clone(m.Joins)
	return &c
}
