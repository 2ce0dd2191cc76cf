package global_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
)

// joinWith requests a certificate.
func (g *gated) joinWith(token string, csr []byte) error {
	_, err := enrolment.Membership{Conn: g.dial(nil)}.Join(g.t.Context(), &enrolmentpb.JoinRequest{Token: token, Csr: csr})
	return err
}

// joinAttempts are attempts with join tokens.
func joinAttempts() []attempt {
	right := func(g *gated) error { return g.joinWith(g.joinToken("zone-1"), newServer(g.t, "zone-1").request(g.t)) }
	row := func(name string, code codes.Code, wrong func(*gated) error, audited ...string) attempt {
		return attempt{name, wrong, right, code, append(audited, verbJoin)}
	}
	with := func(token func(*gated) string) func(*gated) error {
		return func(g *gated) error { return g.joinWith(token(g), newServer(g.t, "zone-1").request(g.t)) }
	}
	asking := func(request func(*gated) []byte) func(*gated) error {
		return func(g *gated) error { return g.joinWith(g.joinToken("zone-1"), request(g)) }
	}
	uris := func(texts ...string) func(*gated) error {
		return asking(func(g *gated) []byte {
			var all []*url.URL
			for _, text := range texts {
				u, err := url.Parse(text)
				g.must(err)
				all = append(all, u)
			}
			return requestOf(g.t, newServer(g.t, "zone-1").key, all...)
		})
	}
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	beside := func(pair func(*gated) *tls.Certificate, authorization ...string) func(*gated) error {
		return func(g *gated) error {
			token, shown := g.joinToken("zone-1"), pair(g)
			ctx := g.t.Context()
			for _, a := range authorization {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", a)
			}
			_, err := enrolment.Membership{Conn: g.dial(shown)}.Join(ctx,
				&enrolmentpb.JoinRequest{Token: token, Csr: newServer(g.t, "zone-1").request(g.t)})
			return err
		}
	}
	return []attempt{
		row("beside a forged certificate", codes.Unauthenticated,
			beside(func(g *gated) *tls.Certificate { return g.forged("zone-1", nil) }), ofZone1),
		row("beside another zone's certificate", codes.PermissionDenied,
			beside(func(g *gated) *tls.Certificate { return g.join("zone-2").pair }), ofZone1),
		row("beside a bearer token", codes.Unauthenticated, beside(func(*gated) *tls.Certificate { return nil },
			"Bearer x"), ofZone1),
		row("no token", codes.Unauthenticated, with(func(*gated) string { return "" }), `"reason":"malformed"`),
		row("used before, by another server", codes.Unauthenticated, func(g *gated) error {
			token := g.joinToken("zone-1")
			g.must(g.joinWith(token, newServer(g.t, "zone-1").request(g.t)))
			return g.joinWith(token, newServer(g.t, "zone-1").request(g.t))
		}, `"reason":"used"`),
		row("used by several servers at once", codes.Unauthenticated, func(g *gated) error {
			token, results := g.joinToken("zone-1"), make(chan error)
			const servers = 8
			for range servers {
				request := newServer(g.t, "zone-1").request(g.t)
				go func() { results <- g.joinWith(token, request) }()
			}
			var lost []error
			for range servers {
				if err := <-results; err != nil {
					lost = append(lost, err)
				}
			}
			if len(lost) != servers-1 {
				return fmt.Errorf("%d of %d servers joined with one string", servers-len(lost), servers)
			}
			return lost[0]
		}, `"reason":"used"`),
		row("used before, by the server whose place another has taken since", codes.Unauthenticated, func(g *gated) error {
			token, first := g.joinToken("zone-1"), newServer(g.t, "zone-1")
			g.must(g.joinWith(token, first.request(g.t)))
			g.must(g.joinWith(token, first.request(g.t))) // its answer was lost
			g.join("zone-1")
			return g.joinWith(token, first.request(g.t))
		}, `"reason":"used"`),
		row("used before, by the same key under another id", codes.Unauthenticated, func(g *gated) error {
			token, first := g.joinToken("zone-1"), newServer(g.t, "zone-1")
			g.must(g.joinWith(token, first.request(g.t)))
			first.id = newID(g.t)
			return g.joinWith(token, first.request(g.t))
		}, `"reason":"used"`),
		row("made before another server took the place", codes.PermissionDenied, func(g *gated) error {
			token := g.joinToken("zone-1")
			g.join("zone-1")
			return g.joinWith(token, newServer(g.t, "zone-1").request(g.t))
		}),
		row("expired", codes.Unauthenticated, with(func(g *gated) string {
			token := g.joinToken("zone-1")
			g.clock.advance(2 * time.Hour)
			return token
		})),
		row("withdrawn", codes.Unauthenticated, with(func(g *gated) string {
			token := g.joinToken("zone-1")
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return token
		})),
		row("of a zone that was deleted", codes.Unauthenticated, with(func(g *gated) string {
			token := g.joinToken("zone-1")
			g.post("/zones/zone-1/_delete", "{}", nil)
			return token
		})),
		row("of another zone", codes.PermissionDenied, with(func(g *gated) string { return g.joinToken("zone-2") })),
		row("a zone token", codes.Unauthenticated, with(func(g *gated) string { return g.zoneToken("zone-1", "cp") }),
			`"reason":"audience"`),
		row("altered", codes.Unauthenticated, with(func(g *gated) string {
			return altered(g.joinToken("zone-1"), 1,
				func(b []byte) []byte { return []byte(strings.Replace(string(b), "zone-1", "zone-3", 1)) })
		}), `"reason":"signature"`),
		row("without a signature", codes.Unauthenticated, with(func(g *gated) string {
			return resigned(g, g.joinToken("zone-1"), jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
		}), `"reason":"algorithm"`),
		row("as a second server of the zone", codes.PermissionDenied, func(g *gated) error {
			first, second := g.plainJoinToken("zone-4"), g.plainJoinToken("zone-4")
			g.must(g.joinWith(first, newServer(g.t, "zone-4").request(g.t)))
			return g.joinWith(second, newServer(g.t, "zone-4").request(g.t))
		}),
		row("a request that is none", codes.InvalidArgument, asking(func(*gated) []byte { return []byte("zone-1") })),
		row("a request that its key has not signed", codes.InvalidArgument, asking(func(g *gated) []byte {
			der := newServer(g.t, "zone-1").request(g.t)
			der[len(der)-1] ^= 1
			return der
		})),
		row("a request without a name", codes.InvalidArgument, uris()),
		row("a request with two names", codes.InvalidArgument,
			uris("causeway://zone/zone-1/"+id, "causeway://zone/zone-2/"+id)),
		row("a request that names another zone", codes.PermissionDenied, uris("causeway://zone/zone-2/"+id)),
		row("a request that names a workload", codes.InvalidArgument, uris("spiffe://default.zone-1.mesh.local/workload/x")),
		row("a request with a name that means more than one thing", codes.InvalidArgument,
			uris("causeway://zone/zone-1/../zone-2/"+id)),
		row("a request with a query", codes.InvalidArgument, uris("causeway://zone/zone-1/"+id+"?zone=zone-2")),
		row("a request with no id", codes.InvalidArgument, uris("causeway://zone/zone-1/")),
		row("a weak key", codes.InvalidArgument, asking(func(g *gated) []byte {
			key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
			g.must(err)
			return requestOf(g.t, key, enrolment.ZoneIdentity{Zone: "zone-1", ID: newID(g.t)}.URI())
		})),
	}
}

// plainJoinToken returns a join token that does not allow replacing another server.
func (g *gated) plainJoinToken(zone string) string {
	var offer struct{ Join string }
	g.post("/zones/"+zone+"/_join", "", &offer)
	parsed, err := enrolment.ParseJoinString(offer.Join)
	g.must(err)
	return parsed.Token
}

// renewWith requests the next certificate of a zone.
func (g *gated) renewWith(conn *grpc.ClientConn, zone string, csr []byte) error {
	_, err := enrolment.Membership{Conn: conn}.Renew(as(g.t.Context(), zone), &enrolmentpb.RenewRequest{Csr: csr})
	return err
}

// renewAttempts are attempts of zones that have joined.
func renewAttempts() []attempt {
	right := func(g *gated) error {
		s := g.join("zone-1")
		return g.renewWith(g.dial(s.pair), "zone-1", s.request(g.t))
	}
	row := func(name string, code codes.Code, wrong func(*gated) error) attempt {
		return attempt{name, wrong, right, code, []string{verbRenew}}
	}
	return []attempt{
		row("without a certificate", codes.Unauthenticated, func(g *gated) error {
			return g.renewWith(g.dial(nil), "zone-1", g.join("zone-1").request(g.t))
		}),
		row("by a token", codes.Unauthenticated, func(g *gated) error {
			s := newServer(g.t, "zone-1")
			_, err := enrolment.Membership{Conn: g.dial(nil)}.Renew(as(g.t.Context(), "zone-1",
				"Bearer "+g.zoneToken("zone-1", "cp")), &enrolmentpb.RenewRequest{Csr: s.request(g.t)})
			return err
		}),
		row("for another zone, by metadata", codes.PermissionDenied, func(g *gated) error {
			s := g.join("zone-1")
			return g.renewWith(g.dial(s.pair), "zone-2", s.request(g.t))
		}),
		row("for another zone, by the request", codes.PermissionDenied, func(g *gated) error {
			return g.renewWith(g.dial(g.join("zone-1").pair), "zone-1", newServer(g.t, "zone-2").request(g.t))
		}),
		row("for another server", codes.PermissionDenied, func(g *gated) error {
			return g.renewWith(g.dial(g.join("zone-1").pair), "zone-1", newServer(g.t, "zone-1").request(g.t))
		}),
		row("by a certificate that was revoked", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			conn := g.dial(s.pair)
			g.must(g.enter(conn, "zone-1"))
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return g.renewWith(conn, "zone-1", s.request(g.t))
		}),
		row("in a loop", codes.PermissionDenied, func(g *gated) error {
			s := g.join("zone-9")
			conn := g.dial(s.pair)
			for range 100 {
				if err := g.renewWith(conn, "zone-9", s.request(g.t)); err != nil {
					return err
				}
			}
			return nil
		}),
		row("by a certificate that has expired on an open connection", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			conn := g.dial(s.pair)
			g.must(g.enter(conn, "zone-1"))
			g.clock.advance(31 * 24 * time.Hour)
			return g.renewWith(conn, "zone-1", s.request(g.t))
		}),
	}
}
