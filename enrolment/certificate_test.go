package enrolment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store" //nolint:depguard // an authority of tests keeps its keys in a store
	"github.com/causeway-mesh/causeway/secrets"
)

// TestClockOfTheAuthority checks that a zone keeps its credential whichever way the global's clock is set, between the
// authority, the signature and the check, until the credential has expired by that clock.
func TestClockOfTheAuthority(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		signs, checks time.Duration // the clock, since the creation of the authority
		accepted      bool
	}{
		{"nothing is set", time.Minute, time.Hour, true},
		{"set back before the check", time.Hour, -48 * time.Hour, true},
		{"set back before the signature", -time.Hour, -time.Hour, true},
		{"set back before the signature, and forward again", -time.Hour, time.Hour, true},
		{"set back twice", -time.Hour, -2 * time.Hour, true},
		{"set forward past the end", time.Hour, 26 * time.Hour, false},
		{"set back past its whole life", -48 * time.Hour, -47 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			now := made
			log := slog.New(slog.DiscardHandler)
			box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
			if err != nil {
				t.Fatal(err)
			}
			a, err := OpenAuthority(t.Context(), secrets.NewKeeper(store.NewMemory(), box),
				AuthorityConfig{Lifetime: 24 * time.Hour, Now: func() time.Time { return now }, Folder: t.TempDir(), Log: log}, box)
			if err != nil {
				t.Fatal(err)
			}
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
			if err != nil {
				t.Fatal(err)
			}
			request, err := x509.ParseCertificateRequest(raw)
			if err != nil {
				t.Fatal(err)
			}
			now = made.Add(c.signs)
			der, _, err := a.Sign(t.Context(), ZoneIdentity{Zone: "zone-1", ID: "641fb998-fd91-425b-a6b8-313d17b4f6f0"}, request)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			now = made.Add(c.checks)
			if held, err := a.Verify(t.Context(), []*x509.Certificate{leaf}); (err == nil) != c.accepted {
				t.Errorf("%+v, %v; accepted should be %t", held, err, c.accepted)
			}
		})
	}
}
