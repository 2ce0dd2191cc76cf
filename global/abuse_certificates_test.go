package global_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/enrolment"
)

func byCertificate(zone string) func(*gated) error {
	return func(g *gated) error { return g.enter(g.dial(g.join(zone).pair), zone) }
}

// certificateAttempts are attempts by client certificate.
func certificateAttempts() []attempt {
	right := byCertificate("zone-1")
	refused := []string{verbConnect, ofZone1, byCert}
	row := func(name string, code codes.Code, wrong func(*gated) error) attempt {
		return attempt{name, wrong, right, code, refused}
	}
	return []attempt{
		{"nothing at all", func(g *gated) error { return g.enter(g.dial(nil), "zone-1") }, right, codes.Unauthenticated,
			[]string{verbConnect, byNothing}},
		row("another zone's, by metadata", codes.PermissionDenied,
			func(g *gated) error { return g.enter(g.dial(g.join("zone-2").pair), "zone-1") }),
		{"no name", func(g *gated) error {
			return g.dial(g.join("zone-1").pair).Invoke(g.t.Context(), healthCheck, new(emptypb.Empty), new(emptypb.Empty))
		}, right, codes.InvalidArgument, []string{verbConnect}},
		{"two names", func(g *gated) error {
			ctx := metadata.AppendToOutgoingContext(as(g.t.Context(), "zone-1"), "client-id", "zone-2")
			return g.dial(g.join("zone-1").pair).Invoke(ctx, healthCheck, new(emptypb.Empty), new(emptypb.Empty))
		}, right, codes.InvalidArgument, []string{verbConnect}},
		row("beside another zone's token", codes.PermissionDenied, func(g *gated) error {
			return g.enter(g.dial(g.join("zone-1").pair), "zone-1", "Bearer "+g.zoneToken("zone-2", "cp"))
		}),
		row("beside a token that is none", codes.Unauthenticated,
			func(g *gated) error { return g.enter(g.dial(g.join("zone-1").pair), "zone-1", "Bearer zone-1") }),
		{"a name that is none", func(g *gated) error { return g.enter(g.dial(g.join("zone-1").pair), "../zone-1") },
			right, codes.InvalidArgument, []string{verbConnect}},
		{"another zone's, by node id",
			func(g *gated) error { return g.asNode(g.dial(g.join("zone-1").pair), "zone-1", "zone-2") },
			func(g *gated) error { return g.asNode(g.dial(g.join("zone-1").pair), "zone-1", "zone-1") },
			codes.PermissionDenied, []string{verbSession, ofZone1}},
		{"another zone's, by identifier",
			func(g *gated) error { return g.asIdentifier(g.dial(g.join("zone-1").pair), "zone-1", "zone-2") },
			func(g *gated) error { return g.asIdentifier(g.dial(g.join("zone-1").pair), "zone-1", "zone-1") },
			codes.PermissionDenied, []string{verbSession, ofZone1}},
		row("signed by itself", codes.Unauthenticated, func(g *gated) error {
			return g.enter(g.dial(g.forged("zone-1", nil)), "zone-1")
		}),
		row("of a foreign authority of the same name", codes.Unauthenticated, func(g *gated) error {
			return g.enter(g.dial(g.forged("zone-1", g.foreignAuthority())), "zone-1")
		}),
		row("with the zone's true id, of a foreign authority", codes.Unauthenticated, func(g *gated) error {
			s := g.join("zone-1")
			return g.enter(g.dial(g.forgedAs(enrolment.ZoneIdentity{Zone: "zone-1", ID: s.id}.URI(), g.foreignAuthority())), "zone-1")
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
			return g.dial(g.join("zone-2").pair).Invoke(ctx, "/causeway.v1.ReportService/Report", new(emptypb.Empty),
				new(emptypb.Empty))
		}),
	}
}

const healthCheck = "/kuma.mesh.v1alpha1.GlobalKDSService/HealthCheck"

// asNode opens the stream from the global and sends node as its ID in the first request.
func (g *gated) asNode(conn *grpc.ClientConn, zone, node string) error {
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: "Mesh",
		ResourceNamesSubscribe: []string{"*"}}))
	return stream.RecvMsg(new(discovery.DeltaDiscoveryResponse))
}

// asIdentifier opens the stream to the global and sends identifier in its first message.
func (g *gated) asIdentifier(conn *grpc.ClientConn, zone, identifier string) error {
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.KDSSyncService/ZoneToGlobalSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1",
		ControlPlane: &corev3.ControlPlane{Identifier: identifier}}))
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
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.GlobalKDSService/StreamStats")
	g.must(err)
	return stream.RecvMsg(new(emptypb.Empty))
}

// authority is a CA that the global does not know.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (g *gated) foreignAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Causeway zone CA"},
		NotBefore: g.clock.Now().Add(-time.Hour), NotAfter: g.clock.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.must(err)
	cert, err := x509.ParseCertificate(der)
	g.must(err)
	return &authority{cert, key}
}

// forged returns a certificate of a zone, signed by an authority or by itself.
func (g *gated) forged(zone string, by *authority) *tls.Certificate {
	return g.forgedAs(enrolment.ZoneIdentity{Zone: zone, ID: newID(g.t)}.URI(), by)
}

func (g *gated) forgedAs(id *url.URL, by *authority) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: g.clock.Now().Add(-time.Hour), NotAfter: g.clock.Now().Add(time.Hour),
		URIs:     []*url.URL{id},
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
