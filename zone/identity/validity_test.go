package identity

import (
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// TestValidity checks that a peer that trusts an SVID trusts the next one too if the clock was set in between and the
// peer's was not, and that no clock makes an SVID valid for weeks.
func TestValidity(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	domain := spiffeid.RequireTrustDomainFromString("default.zone-1.mesh.local")
	a, err := newAuthority(domain, start.Add(-100*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	who := &Assigned{ID: spiffeid.RequireFromPath(domain, "/workload/x"), Lifetime: Lifetime}
	other := &Assigned{ID: spiffeid.RequireFromPath(domain, "/workload/y"), Lifetime: Lifetime}
	first, err := a.issueWithKey(who, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name        string
		who         *Assigned
		set         time.Duration
		from, until time.Duration // relative to the clock at that time
	}{
		{"at half of its life", who, Lifetime / 2, -skew, Lifetime},
		{"sooner, for another authority", who, time.Hour, -skew, Lifetime},
		{"set forward past the end", who, 40 * 24 * time.Hour, -40*24*time.Hour - skew, Lifetime},
		{"set forward within its life", who, 20 * time.Hour, -20*time.Hour - skew, Lifetime},
		{"set back an hour", who, -time.Hour, -skew, Lifetime + time.Hour},
		{"set back two days", who, -48 * time.Hour, -skew, Lifetime + 48*time.Hour},
		{"set back far", who, -40 * 24 * time.Hour, -skew, Lifetime},
		{"somebody else", other, 40 * 24 * time.Hour, -skew, Lifetime},
	} {
		now := start.Add(tt.set)
		next, err := a.issueWithKey(tt.who, first, now)
		if err != nil {
			t.Fatal(err)
		}
		if from, until := next.Leaf.NotBefore.Sub(now), next.Leaf.NotAfter.Sub(now); from != tt.from || until != tt.until {
			t.Errorf("%s: valid from %s until %s, want %s and %s", tt.name, from, until, tt.from, tt.until)
		}
		if renew := next.RenewAt.Sub(now); renew != Lifetime/2 {
			t.Errorf("%s: the next is due in %s", tt.name, renew)
		}
	}
}
