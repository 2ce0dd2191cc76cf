package global_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/kds"
)

// Words of the audit log.
const (
	verbConnect = `"verb":"connect"`
	verbSession = `"verb":"session"`
	verbJoin    = `"verb":"join"`
	verbRenew   = `"verb":"renew"`
	ofZone1     = `"user":"zone:zone-1"`
	byCert      = `"method":"certificate"`
	byToken     = `"method":"token"`
	byNothing   = `"method":"none"`
)

// attempt is a way of being let in that must fail, and what makes it right.
type attempt struct {
	name string
	// wrong is refused with code, and an audit line with these words; right is the same with right credentials.
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

func byCertificate(zone string) func(*gated) error {
	return func(g *gated) error { return g.enter(g.dial(g.join(zone).pair), zone) }
}

// certificateAttempts are by client certificate.
func certificateAttempts() []attempt {
	right := byCertificate("zone-1")
	refused := []string{verbConnect, ofZone1, byCert}
	row := func(name string, code codes.Code, wrong func(*gated) error) attempt {
		return attempt{name, wrong, right, code, refused}
	}
	return []attempt{
		{"nothing at all", func(g *gated) error { return g.enter(g.dial(nil), "zone-1") }, right, codes.Unauthenticated, []string{verbConnect, byNothing}},
		row("another zone's, by metadata", codes.PermissionDenied, func(g *gated) error { return g.enter(g.dial(g.join("zone-2").pair), "zone-1") }),
		{"no name", func(g *gated) error {
			return g.dial(g.join("zone-1").pair).Invoke(g.t.Context(), healthCheck, new(emptypb.Empty), new(emptypb.Empty))
		}, right, codes.InvalidArgument, []string{verbConnect}},
		{"two names", func(g *gated) error {
			ctx := metadata.AppendToOutgoingContext(as(g.t.Context(), "zone-1"), "client-id", "zone-2")
			return g.dial(g.join("zone-1").pair).Invoke(ctx, healthCheck, new(emptypb.Empty), new(emptypb.Empty))
		}, right, codes.InvalidArgument, []string{verbConnect}},
		{"a name that is none", func(g *gated) error { return g.enter(g.dial(g.join("zone-1").pair), "../zone-1") }, right, codes.InvalidArgument, []string{verbConnect}},
		{"another zone's, by node id", func(g *gated) error { return g.asNode(g.dial(g.join("zone-1").pair), "zone-1", "zone-2") },
			func(g *gated) error { return g.asNode(g.dial(g.join("zone-1").pair), "zone-1", "zone-1") }, codes.PermissionDenied, []string{verbSession, ofZone1}},
		{"another zone's, by identifier", func(g *gated) error { return g.asIdentifier(g.dial(g.join("zone-1").pair), "zone-1", "zone-2") },
			func(g *gated) error { return g.asIdentifier(g.dial(g.join("zone-1").pair), "zone-1", "zone-1") }, codes.PermissionDenied, []string{verbSession, ofZone1}},
		row("signed by itself", codes.Unauthenticated, func(g *gated) error {
			return g.enter(g.dial(g.forged("zone-1", nil)), "zone-1")
		}),
		row("of a foreign authority of the same name", codes.Unauthenticated, func(g *gated) error {
			return g.enter(g.dial(g.forged("zone-1", g.foreignAuthority())), "zone-1")
		}),
		row("with the zone's true id, of a foreign authority", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			return g.enter(g.dial(g.forgedAs(kds.Member{Zone: "zone-1", ID: s.id}.URI(), g.foreignAuthority())), "zone-1")
		}),
		row("a workload's identity", codes.Unauthenticated, func(g *gated) error {
			id := &url.URL{Scheme: "spiffe", Host: "default.zone-1.mesh.local", Path: "/workload/zone-1"}
			return g.enter(g.dial(g.forgedAs(id, g.foreignAuthority())), "zone-1")
		}),
		row("revoked", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("of a server that was replaced", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			g.join("zone-1")
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("of a zone that was deleted", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			g.post("/zones/zone-1/_delete", "{}", nil)
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("of a zone that was removed as a resource", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			if code, body := g.call("DELETE", "/zones/zone-1", ""); code != 200 {
				g.t.Errorf("DELETE: %d %s", code, body)
			}
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("of a zone before it was deleted and made again", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			g.post("/zones/zone-1/_delete", "{}", nil)
			g.joinToken("zone-1")
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("expired", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			g.clock.advance(30*24*time.Hour + time.Minute)
			return g.enter(g.dial(s.pair), "zone-1")
		}),
		row("for a reverse call, another zone's", codes.PermissionDenied, func(g *gated) error {
			return g.adminStream(g.dial(g.join("zone-2").pair), "zone-1")
		}),
		row("for a report, another zone's", codes.PermissionDenied, func(g *gated) error {
			ctx := as(g.t.Context(), "zone-1")
			return g.dial(g.join("zone-2").pair).Invoke(ctx, "/causeway.v1.ReportService/Report", new(emptypb.Empty), new(emptypb.Empty))
		}),
	}
}

const healthCheck = "/kuma.mesh.v1alpha1.GlobalKDSService/HealthCheck"

// asNode opens the stream downwards and calls itself node in the first request.
func (g *gated) asNode(conn *grpc.ClientConn, zone, node string) error {
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: "Mesh", ResourceNamesSubscribe: []string{"*"}}))
	return stream.RecvMsg(new(discovery.DeltaDiscoveryResponse))
}

// asIdentifier opens the stream upwards and calls itself identifier in its first message.
func (g *gated) asIdentifier(conn *grpc.ClientConn, zone, identifier string) error {
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/kuma.mesh.v1alpha1.KDSSyncService/ZoneToGlobalSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1", ControlPlane: &corev3.ControlPlane{Identifier: identifier}}))
	for {
		request := new(discovery.DeltaDiscoveryRequest)
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		if request.GetResponseNonce() == "1" {
			return nil
		}
	}
}

func (g *gated) adminStream(conn *grpc.ClientConn, zone string) error {
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/kuma.mesh.v1alpha1.GlobalKDSService/StreamStats")
	g.must(err)
	return stream.RecvMsg(new(emptypb.Empty))
}

// authority is one that the global does not know.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (g *gated) foreignAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Causeway zone CA"}, NotBefore: g.clock.Now().Add(-time.Hour), NotAfter: g.clock.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.must(err)
	cert, err := x509.ParseCertificate(der)
	g.must(err)
	return &authority{cert, key}
}

// forged is a certificate of a zone by an authority, or by itself.
func (g *gated) forged(zone string, by *authority) *tls.Certificate {
	return g.forgedAs(kds.Member{Zone: zone, ID: newID(g.t)}.URI(), by)
}

func (g *gated) forgedAs(id *url.URL, by *authority) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: g.clock.Now().Add(-time.Hour), NotAfter: g.clock.Now().Add(time.Hour), URIs: []*url.URL{id},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	g.must(err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// tokenAttempts are by bearer token.
func tokenAttempts() []attempt {
	right := func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+g.zoneToken("zone-1", "cp")) }
	row := func(name string, code codes.Code, token func(*gated) string, audited ...string) attempt {
		return attempt{name, func(g *gated) error { return g.enter(g.dial(nil), "zone-1", token(g)) }, right, code, append(audited, verbConnect, ofZone1, byToken)}
	}
	good := func(g *gated) string { return g.zoneToken("zone-1", "cp") }
	return []attempt{
		row("empty", codes.Unauthenticated, func(*gated) string { return "" }),
		row("no token", codes.Unauthenticated, func(*gated) string { return "Bearer" }),
		row("another scheme", codes.Unauthenticated, func(g *gated) string { return "Basic " + good(g) }),
		row("no JWT", codes.Unauthenticated, func(*gated) string { return "Bearer zone-1" }, `"reason":"malformed"`),
		row("very long", codes.Unauthenticated, func(g *gated) string { return "Bearer " + good(g) + strings.Repeat("A", 10_000) }, `"reason":"malformed"`),
		row("another zone's", codes.PermissionDenied, func(g *gated) string { return "Bearer " + g.zoneToken("zone-2", "cp") }),
		row("of another scope", codes.PermissionDenied, func(g *gated) string { return "Bearer " + g.zoneToken("zone-1", "ingress", "egress") }),
		row("of another audience: a join token", codes.Unauthenticated, func(g *gated) string { return "Bearer " + g.joinToken("zone-1") }, `"reason":"audience"`),
		row("expired", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.clock.advance(31 * 24 * time.Hour)
			return "Bearer " + token
		}),
		row("revoked", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return "Bearer " + token
		}),
		row("of a zone that was deleted", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.post("/zones/zone-1/_delete", "{}", nil)
			return "Bearer " + token
		}),
		row("of a key that was retired", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			var keys struct{ Keys []struct{ ID string } }
			g.post("/_keys/token-signing/_rotate", "{}", &keys)
			g.post("/_keys/token-signing/"+keys.Keys[1].ID+"/_retire", "{}", nil)
			return "Bearer " + token
		}, `"reason":"unknown-key"`),
		row("altered claims", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + altered(good(g), 1, func(b []byte) []byte { return []byte(strings.Replace(string(b), "zone-1", "zone-3", 1)) })
		}, `"reason":"signature"`),
		row("altered signature", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + altered(good(g), 2, func(b []byte) []byte { b[0] ^= 1; return b })
		}, `"reason":"signature"`),
		row("without a signature", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
		}, `"reason":"algorithm"`),
		row("signed with a shared secret", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodHS256, []byte("secret"))
		}, `"reason":"algorithm"`),
		row("signed by a foreign key under a known id", codes.Unauthenticated, func(g *gated) string {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			g.must(err)
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodEdDSA, key)
		}, `"reason":"signature"`),
		row("signed by RSA under the id of an EdDSA key", codes.Unauthenticated, func(g *gated) string {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			g.must(err)
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodRS256, key)
		}, `"reason":"algorithm"`),
		{"two tokens", func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+good(g), "Bearer "+good(g)) }, right, codes.Unauthenticated, []string{verbConnect, byToken}},
		{"beside another zone's certificate", func(g *gated) error {
			return g.enter(g.dial(g.join("zone-2").pair), "zone-1", "Bearer "+good(g))
		}, right, codes.PermissionDenied, []string{verbConnect, byCert}},
	}
}

// altered changes one part of a token.
func altered(token string, part int, change func([]byte) []byte) string {
	parts := strings.Split(token, ".")
	raw, err := jwt.NewParser().DecodeSegment(parts[part])
	if err != nil {
		return err.Error()
	}
	parts[part] = (&jwt.Token{}).EncodeSegment(change(raw))
	return strings.Join(parts, ".")
}

// resigned has the claims and key id of a token, and another signature.
func resigned(g *gated, token string, method jwt.SigningMethod, key any) string {
	claims := jwt.MapClaims{}
	old, _, err := jwt.NewParser().ParseUnverified(token, claims)
	g.must(err)
	made := jwt.NewWithClaims(method, claims)
	made.Header["kid"] = old.Header["kid"]
	out, err := made.SignedString(key)
	g.must(err)
	return out
}

func withoutTokensAttempts() []attempt {
	return []attempt{{
		"a token where none are taken",
		func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+g.joinToken("zone-1")) },
		byCertificate("zone-1"), codes.Unauthenticated, []string{verbConnect, byToken},
	}}
}

// joinWith asks for a certificate.
func (g *gated) joinWith(token string, csr []byte) error {
	_, err := kds.Membership{Conn: g.dial(nil)}.Join(g.t.Context(), &kds.JoinRequest{Token: token, CSR: csr})
	return err
}

// joinAttempts are with join tokens.
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
	return []attempt{
		row("no token", codes.Unauthenticated, with(func(*gated) string { return "" }), `"reason":"malformed"`),
		row("used before, by another server", codes.Unauthenticated, func(g *gated) error {
			token := g.joinToken("zone-1")
			g.must(g.joinWith(token, newServer(g.t, "zone-1").request(g.t)))
			return g.joinWith(token, newServer(g.t, "zone-1").request(g.t))
		}, `"reason":"used"`),
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
		row("a zone token", codes.Unauthenticated, with(func(g *gated) string { return g.zoneToken("zone-1", "cp") }), `"reason":"audience"`),
		row("altered", codes.Unauthenticated, with(func(g *gated) string {
			return altered(g.joinToken("zone-1"), 1, func(b []byte) []byte { return []byte(strings.Replace(string(b), "zone-1", "zone-3", 1)) })
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
		row("a request with two names", codes.InvalidArgument, uris("causeway://zone/zone-1/"+id, "causeway://zone/zone-2/"+id)),
		row("a request that names another zone", codes.PermissionDenied, uris("causeway://zone/zone-2/"+id)),
		row("a request that names a workload", codes.InvalidArgument, uris("spiffe://default.zone-1.mesh.local/workload/x")),
		row("a request with a name that means more than one thing", codes.InvalidArgument, uris("causeway://zone/zone-1/../zone-2/"+id)),
		row("a request with a query", codes.InvalidArgument, uris("causeway://zone/zone-1/"+id+"?zone=zone-2")),
		row("a request with no id", codes.InvalidArgument, uris("causeway://zone/zone-1/")),
		row("a weak key", codes.InvalidArgument, asking(func(g *gated) []byte {
			key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
			g.must(err)
			return requestOf(g.t, key, kds.Member{Zone: "zone-1", ID: newID(g.t)}.URI())
		})),
	}
}

// plainJoinToken is one without leave to take another server's place.
func (g *gated) plainJoinToken(zone string) string {
	var offer struct{ Join string }
	g.post("/zones/"+zone+"/_join", "", &offer)
	parsed, err := kds.ParseJoinString(offer.Join)
	g.must(err)
	return parsed.Token
}

// renewWith asks for the next certificate of a zone.
func (g *gated) renewWith(conn *grpc.ClientConn, zone string, csr []byte) error {
	_, err := kds.Membership{Conn: conn}.Renew(as(g.t.Context(), zone), &kds.RenewRequest{CSR: csr})
	return err
}

// renewAttempts are of zones that have joined.
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
			_, err := kds.Membership{Conn: g.dial(nil)}.Renew(as(g.t.Context(), "zone-1", "Bearer "+g.zoneToken("zone-1", "cp")), &kds.RenewRequest{CSR: s.request(g.t)})
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
		row("by a certificate that has expired on an open connection", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			conn := g.dial(s.pair)
			g.must(g.enter(conn, "zone-1"))
			g.clock.advance(31 * 24 * time.Hour)
			return g.renewWith(conn, "zone-1", s.request(g.t))
		}),
	}
}

// anonymousAttempts are to get around a credential where none is asked for.
func anonymousAttempts() []attempt {
	refused := []string{verbConnect, ofZone1, byNothing}
	free := func(g *gated) error { return g.enter(g.dial(nil), "zone-8") }
	return []attempt{
		{"as a zone that has joined", func(g *gated) error { g.join("zone-1"); return g.enter(g.dial(nil), "zone-1") }, byCertificate("zone-1"), codes.Unauthenticated, refused},
		{"as a zone that may join", func(g *gated) error { g.joinToken("zone-1"); return g.enter(g.dial(nil), "zone-1") }, free, codes.Unauthenticated, refused},
		{"as a zone that was revoked", func(g *gated) error {
			g.join("zone-1")
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return g.enter(g.dial(nil), "zone-1")
		}, free, codes.Unauthenticated, refused},
		{"as a zone that was deleted", func(g *gated) error {
			g.join("zone-1")
			g.post("/zones/zone-1/_delete", "{}", nil)
			return g.enter(g.dial(nil), "zone-1")
		}, free, codes.Unauthenticated, refused},
		{"with a bad certificate, as nobody", func(g *gated) error { return g.enter(g.dial(g.forged("zone-8", nil)), "zone-8") }, free, codes.Unauthenticated, []string{verbConnect, byCert}},
		{"with a bad token, as nobody", func(g *gated) error { return g.enter(g.dial(nil), "zone-8", "Bearer x") }, free, codes.Unauthenticated, []string{verbConnect, byToken}},
	}
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
