package global_test

import (
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/causeway-mesh/causeway/global"
)

// Words of the audit log.
const (
	verbConnect = `"verb":"connect"`
	verbSession = `"verb":"session"`
	verbJoin    = `"verb":"join"`
	verbRenew   = `"verb":"renew"`
	verbSend    = `"verb":"send"`
	ofZone1     = `"user":"zone:zone-1"`
	byCert      = `"method":"certificate"`
	byToken     = `"method":"token"`
	byNothing   = `"method":"none"`
)

// attempt is a way of being let in that must fail, and what makes it right.
type attempt struct {
	name string
	// wrong is refused with code, and an audit line with these words, or none where there are no words; right is the same with right
	// credentials.
	wrong, right func(*gated) error
	code         codes.Code
	audited      []string
}

// TestAbuseOfZones: each attempt to be a zone that one is not is refused with the right status and an audit line, and the same
// attempt with right credentials is not.
func TestAbuseOfZones(t *testing.T) {
	for _, group := range []struct {
		name   string
		change func(*global.Config)
		rows   []attempt
	}{
		{"certificates", func(*global.Config) {}, certificateAttempts()},
		{"tokens", func(*global.Config) {}, tokenAttempts()},
		{"without tokens", func(c *global.Config) { c.KDSZoneTokens = false }, withoutTokensAttempts()},
		{"joining", func(*global.Config) {}, joinAttempts()},
		{"renewing", func(*global.Config) {}, renewAttempts()},
		{"types", func(*global.Config) {}, typeAttempts()},
		{"where anonymous zones are let in", func(c *global.Config) { c.KDSInsecureAnonymous = true }, anonymousAttempts()},
	} {
		t.Run(group.name, func(t *testing.T) {
			g := startGated(t, group.change)
			for _, row := range group.rows {
				t.Run(row.name, func(t *testing.T) {
					g := g.in(t)
					before := len(g.audited())
					g.refused(row.wrong(g), row.code, before, row.audited...)
					if err := row.right(g); err != nil {
						t.Errorf("with right credentials: %v", err)
					}
				})
			}
		})
	}
}

// in is g for a test of its own.
func (g *gated) in(t *testing.T) *gated {
	c, r := *g, *g.running
	c.t, c.running = t, &r
	c.running.t = t
	return &c
}

// TestDowngrade: the KDS port speaks nothing older than TLS 1.2, and no plaintext.
func TestDowngrade(t *testing.T) {
	g := startGated(t)
	handshake := func(most uint16) error {
		config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS10, MaxVersion: most, NextProtos: []string{"h2"}} //nolint:gosec // that is what is tried
		conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: config}).DialContext(t.Context(), "tcp", g.addresses["kds"])
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		if err := handshake(version); (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	plain, err := grpc.NewClient(g.addresses["kds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	g.must(err)
	defer plain.Close()
	if err := g.enter(plain, "zone-1"); err == nil {
		t.Error("it answers in plaintext")
	}
}
