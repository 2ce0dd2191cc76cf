package xds_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// gatedServer is an xDS server over TLS that asks for credentials.
type gatedServer struct {
	*zoneServer
	admission   *xds.Admission
	issuer      *tokens.Issuer
	authorities *identity.Authorities
	roots       *x509.CertPool

	mu      sync.Mutex
	refused []xds.Refusal
	pods    map[string]podAnswer // by token; a token that is not there proves no pod
	later   time.Duration        // what the clock of tokens is ahead
}

func newGatedServer(t *testing.T) *gatedServer {
	t.Helper()
	return newGatedServerWith(t, func(*gatedServer, *xds.AdmissionConfig) {})
}

func newGatedServerWith(t *testing.T, change func(*gatedServer, *xds.AdmissionConfig)) *gatedServer {
	t.Helper()
	g := &gatedServer{zoneServer: newZoneServer(t), roots: x509.NewCertPool()}
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	now := func() time.Time {
		g.mu.Lock()
		defer g.mu.Unlock()
		return time.Now().Add(g.later)
	}
	g.issuer, err = tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(g.store, box), Now: now,
		Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	certificate, err := server.LoadOrCreateCertificate(t.TempDir(), nil, box, now)
	must(t, err)
	g.roots.AppendCertsFromPEM(certificate.CAPEM)
	g.authorities = identity.NewAuthorities(identity.Config{Keeper: g.keeper, Zone: home.Zone})
	config := xds.AdmissionConfig{
		Required: true, Tokens: g.issuer, Store: g.store, Identity: g.authorities.Expect, Now: now,
		Authorities: func(d spiffeid.TrustDomain) []*x509.Certificate { return g.authorities.Signing("default", d) },
		Log:         slog.New(slog.DiscardHandler),
		Refused: func(r xds.Refusal) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.refused = append(g.refused, r)
		},
	}
	change(g, &config)
	admission := xds.NewAdmission(config)
	g.admission = admission
	g.stop()
	proxies := xds.New(xds.Config{
		Store: g.store, Status: g.status, Home: home, Instance: "test", Log: slog.New(slog.DiscardHandler),
		Authorities: g.authorities,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 4)
	go func() { done <- proxies.Run(ctx) }()
	go func() { done <- g.issuer.Run(ctx) }()
	go func() { done <- admission.Run(ctx) }()
	go func() {
		done <- xds.Serve(ctx, listener, xds.WithClientCertificates(certificate.TLSConfig()), proxies, admission)
	}()
	g.stop = func() {
		cancel()
		for range 4 {
			must(t, <-done)
		}
		g.stop = func() {}
	}
	g.trust()
	for _, name := range []string{"backend", "frontend"} {
		g.dataplane(name, httpInbound)
	}
	return g
}

func (g *gatedServer) token(c tokens.Claims, ttl time.Duration) string {
	g.t.Helper()
	if c.Audience == "" {
		c.Audience = tokens.AudienceDataplane
	}
	token, _, err := g.issuer.Issue(g.t.Context(), c, ttl)
	must(g.t, err)
	return token
}

func (g *gatedServer) svid(name string) *tls.Certificate {
	g.t.Helper()
	dp := g.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name})
	svid, err := g.authorities.Issue(dp)
	must(g.t, err)
	pair, err := tls.X509KeyPair(svid.CertificatePEM, svid.KeyPEM)
	must(g.t, err)
	return &pair
}

// lastRefused is what the server said of its last refusal.
func (g *gatedServer) lastRefused() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.refused) == 0 {
		return "nothing"
	}
	r := g.refused[len(g.refused)-1]
	return r.Method + " " + r.Reason
}

// showing is what a client shows.
type showing struct {
	authorization []string
	certificate   *tls.Certificate
}

func bearer(token string) showing { return showing{authorization: []string{"Bearer " + token}} }

// ask opens a stream, delta or state of the world, and asks for secrets by name. It returns the names it got.
func (g *gatedServer) ask(sotw bool, show showing, node *corev3.Node, typeURL string,
	names ...string) ([]string, error) {
	g.t.Helper()
	config := &tls.Config{RootCAs: g.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if show.certificate != nil {
		config.Certificates = []tls.Certificate{*show.certificate}
	}
	conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(g.t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, a := range show.authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", a)
	}
	client := discovery.NewAggregatedDiscoveryServiceClient(conn)
	var out []string
	if sotw {
		stream, err := client.StreamAggregatedResources(ctx)
		must(g.t, err)
		if err := stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: typeURL,
			ResourceNames: names}); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		response, err := stream.Recv()
		for _, r := range response.GetResources() {
			out = append(out, nameOf(g.t, r))
		}
		return out, err
	}
	stream, err := client.DeltaAggregatedResources(ctx)
	must(g.t, err)
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL,
		ResourceNamesSubscribe: names}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	response, err := stream.Recv()
	for _, r := range response.GetResources() {
		out = append(out, r.GetName())
	}
	return out, err
}
