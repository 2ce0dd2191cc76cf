package enrolment

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// TestDueByAWrongClock checks that a zone whose clock differs from the global's renews its credential at half of the
// life that the global set, and once when its clock is set back. A credential that has just arrived is never due.
func TestDueByAWrongClock(t *testing.T) {
	t.Parallel()
	const life = 30 * 24 * time.Hour
	signed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := func(zonesClock time.Duration) *HeldCredential {
		leaf := &x509.Certificate{NotBefore: signed.Add(-datedBack), NotAfter: signed.Add(life)}
		return &HeldCredential{Received: signed.Add(zonesClock), Expires: leaf.NotAfter, pair: tls.Certificate{Leaf: leaf}}
	}
	for _, ahead := range []time.Duration{0, time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour, -time.Hour,
		-48 * time.Hour} {
		m := got(ahead)
		for _, tt := range []struct {
			name       string
			age, wants time.Duration
		}{
			{"just received", 0, life / 2},
			{"a day old", 24 * time.Hour, life/2 - 24*time.Hour},
			{"half over", life / 2, 0},
			{"the clock slews", -time.Second, life/2 + time.Second},
			{"the clock was set back", -48 * time.Hour, 0},
		} {
			if due := m.due(m.Received.Add(tt.age)); due != tt.wants {
				t.Errorf("%s ahead, %s: due in %s, want %s", ahead, tt.name, due, tt.wants)
			}
		}
	}
}
