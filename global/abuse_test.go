package global_test

import (
	"testing"

	"google.golang.org/grpc/codes"

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

// attempt is a way of being admitted that must fail, and the same way with valid credentials.
type attempt struct {
	name string
	// wrong is refused with code, and an audit line with these words, or none if there are no words; right is the same
	// with valid credentials.
	wrong, right func(*gated) error
	code         codes.Code
	audited      []string
}

// TestAbuseOfZones checks that each attempt to pose as a zone is refused with the right status and an audit line, and
// that the same attempt with valid credentials succeeds.
func TestAbuseOfZones(t *testing.T) {
	t.Parallel()
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
		{"where anonymous zones are let in and tokens are not taken", func(c *global.Config) { c.KDSInsecureAnonymous, c.KDSZoneTokens = true, false }, anonymousWithoutTokensAttempts()},
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

// in returns g for a subtest.
func (g *gated) in(t *testing.T) *gated {
	c, r := *g, *g.running
	c.t, c.running = t, &r
	c.running.t = t
	return &c
}
