package xds_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// TestWhoMayOpenAStream: each row changes one thing of what is shown; the rows that pass show that nothing else is
// wrong.
func TestWhoMayOpenAStream(t *testing.T) {
	t.Parallel()
	g := newGatedServer(t)
	strangers := newGatedServer(t)
	backend := tokens.Claims{Mesh: "default", Dataplane: "backend"}
	revoked, c, err := g.issuer.Issue(t.Context(), tokens.Claims{Audience: tokens.AudienceDataplane, Mesh: "default",
		Dataplane: "backend"}, time.Hour)
	must(t, err)
	must(t, g.issuer.Revoke(t.Context(), c.ID, c.Expires))
	good := g.token(backend, time.Hour)
	expired := func() string {
		g.mu.Lock()
		g.later = -2 * time.Hour
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.later = 0
			g.mu.Unlock()
		}()
		return g.token(backend, time.Hour)
	}()
	other := &corev3.Node{Id: xds.NodeID("other", "backend")}
	for _, row := range []struct {
		name   string
		show   showing
		node   *corev3.Node
		want   codes.Code
		reason string
	}{
		{"its own token", bearer(good), nil, codes.OK, ""},
		{"token by labels", bearer(g.token(tokens.Claims{Mesh: "default", Labels: map[string]string{"app": "backend"}},
			time.Hour)), nil, codes.OK, ""},
		{"token by workload", bearer(g.token(tokens.Claims{Mesh: "default", Workload: "backend"}, time.Hour)), nil,
			codes.OK, ""},
		{"its own SVID", showing{certificate: g.svid("backend")}, nil, codes.OK, ""},
		{"nothing", showing{}, nil, codes.Unauthenticated, " missing"},
		{"expired", bearer(expired), nil, codes.Unauthenticated, "token expired"},
		{"revoked", bearer(revoked), nil, codes.Unauthenticated, "token revoked"},
		{"altered", bearer(good[:len(good)-10] + "AAAAAAAAAA"), nil, codes.Unauthenticated, "token signature"},
		{"a stranger's", bearer(strangers.token(backend, time.Hour)), nil, codes.Unauthenticated, "token unknown-key"},
		{"a user's token", bearer(g.token(tokens.Claims{Audience: tokens.AudienceUser, Mesh: "default",
			Dataplane: "backend"}, time.Hour)), nil, codes.Unauthenticated, "token audience"},
		{"a zone's token", bearer(g.token(tokens.Claims{Audience: tokens.AudienceZone, Mesh: "default",
			Dataplane: "backend"}, time.Hour)), nil, codes.Unauthenticated, "token audience"},
		{"basic instead of bearer", showing{authorization: []string{"Basic " + good}}, nil, codes.Unauthenticated,
			"token malformed"},
		{"two tokens", showing{authorization: []string{"Bearer " + good, "Bearer " + good}}, nil, codes.Unauthenticated,
			"token malformed"},
		{"another's token", bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "frontend"}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"another's node", bearer(good), nodeOf("frontend", ""), codes.PermissionDenied, "token another-proxy"},
		{"its name in a namespace", bearer(good), nodeOf("backend", "payments"), codes.PermissionDenied,
			"token another-proxy"},
		{"another mesh's node", bearer(good), other, codes.PermissionDenied, "token another-proxy"},
		{"another mesh's token", bearer(g.token(tokens.Claims{Mesh: "other", Dataplane: "backend"}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"a token for no mesh", bearer(g.token(tokens.Claims{Dataplane: "backend"}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"a token for a whole mesh", bearer(g.token(tokens.Claims{Mesh: "default"}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"labels of another", bearer(g.token(tokens.Claims{Mesh: "default",
			Labels: map[string]string{"app": "frontend"}}, time.Hour)), nil, codes.PermissionDenied, "token another-proxy"},
		{"labels that it lacks", bearer(g.token(tokens.Claims{Mesh: "default",
			Labels: map[string]string{"app": "backend", "tier": ""}}, time.Hour)), nil, codes.PermissionDenied,
			"token another-proxy"},
		{"labels, and no such Dataplane", bearer(g.token(tokens.Claims{Mesh: "default",
			Labels: map[string]string{"app": "backend"}}, time.Hour)), nodeOf("absent", ""), codes.PermissionDenied,
			"token another-proxy"},
		{"labels, in a namespace", bearer(g.token(tokens.Claims{Mesh: "default",
			Labels: map[string]string{"app": "backend"}}, time.Hour)), nodeOf("backend", "payments"),
			codes.PermissionDenied, "token another-proxy"},
		{"labels of a namespace", bearer(g.token(tokens.Claims{Mesh: "default",
			Labels: map[string]string{"app": "backend", resources.LabelNamespace: "payments"}}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"workload of another", bearer(g.token(tokens.Claims{Mesh: "default", Workload: "frontend"}, time.Hour)), nil,
			codes.PermissionDenied, "token another-proxy"},
		{"name right, workload wrong", bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend",
			Workload: "frontend"}, time.Hour)), nil, codes.PermissionDenied, "token another-proxy"},
		{"an ingress's token", bearer(g.token(tokens.Claims{Dataplane: "backend",
			Scopes: []string{xds.ScopeZoneIngress}}, time.Hour)), nil, codes.PermissionDenied, "token another-proxy"},
		{"a Dataplane's token for an ingress", bearer(good), &corev3.Node{Id: xds.NodeID("", "backend")},
			codes.PermissionDenied, "token another-proxy"},
		{"another's SVID", showing{certificate: g.svid("frontend")}, nil, codes.PermissionDenied,
			"certificate another-proxy"},
		{"an SVID of a stranger's authority", showing{certificate: strangers.svid("backend")}, nil,
			codes.PermissionDenied, "certificate another-proxy"},
		{"an SVID, and an ingress's node", showing{certificate: g.svid("backend")},
			&corev3.Node{Id: xds.NodeID("", "backend")}, codes.PermissionDenied, "certificate another-proxy"},
		{"its own token, beside its own SVID", showing{authorization: bearer(good).authorization,
			certificate: g.svid("backend")}, nil, codes.OK, ""},
		{"its own token, beside another's SVID", showing{authorization: bearer(good).authorization,
			certificate: g.svid("frontend")}, nil, codes.PermissionDenied, "token another-proxy"},
		{"its own token, beside a stranger's SVID", showing{authorization: bearer(good).authorization,
			certificate: strangers.svid("backend")}, nil, codes.PermissionDenied, "token another-proxy"},
		{"its own SVID, and another's token", showing{authorization: bearer(g.token(tokens.Claims{Mesh: "default",
			Dataplane: "frontend"}, time.Hour)).authorization, certificate: g.svid("backend")}, nil,
			codes.PermissionDenied, "token another-proxy"},
	} {
		for _, sotw := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sotw=%t", row.name, sotw), func(t *testing.T) {
				node := row.node
				if node == nil {
					node = nodeOf("backend", "")
				}
				got, err := g.ask(sotw, row.show, node, sds, "identity_cert:default/backend")
				if status.Code(err) != row.want {
					t.Fatalf("got %v, %v; want %s", got, err, row.want)
				}
				if row.want == codes.OK && (len(got) != 1 || got[0] != "identity_cert:default/backend") {
					t.Errorf("got %v", got)
				}
				if row.want != codes.OK && g.lastRefused() != row.reason {
					t.Errorf("told of %q, want %q", g.lastRefused(), row.reason)
				}
				if err != nil && strings.Contains(err.Error(), "frontend") {
					t.Errorf("the peer learns too much: %v", err)
				}
			})
		}
	}
}

// TestOnlyOnesOwn: with a good credential, nobody gets what is another's, however it is asked for.
func TestOnlyOnesOwn(t *testing.T) {
	t.Parallel()
	g := newGatedServer(t)
	show := bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, time.Hour))
	// Somebody else has got his, so that it exists.
	theirs := bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "frontend"}, time.Hour))
	if got, err := g.ask(false, theirs, nodeOf("frontend", ""), sds, "identity_cert:default/frontend"); err != nil ||
		len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, sotw := range []bool{false, true} {
		for _, row := range []struct {
			name, typeURL string
			ask           []string
			want          string
		}{
			{"secrets by name", sds, []string{"identity_cert:default/backend", "identity_cert:default/frontend",
				"identity_cert:default/payments/backend", "identity_cert:other/backend"}, "identity_cert:default/backend"},
			{"secrets by path tricks", sds, []string{"identity_cert:default/backend",
				"identity_cert:default/../default/frontend", "identity_cert:*", "identity_cert:default/frontend "},
				"identity_cert:default/backend"},
		} {
			t.Run(fmt.Sprintf("%s/sotw=%t", row.name, sotw), func(t *testing.T) {
				got, err := g.ask(sotw, show, nodeOf("backend", ""), row.typeURL, row.ask...)
				must(t, err)
				if strings.Join(got, " ") != row.want {
					t.Errorf("got %v", got)
				}
			})
		}
	}
	// All secrets there are: the proxy's own identity, and whom the mesh trusts.
	got, err := g.ask(false, show, nodeOf("backend", ""), sds, "*")
	must(t, err)
	for _, name := range got {
		if name != "identity_cert:default/backend" && !strings.HasPrefix(name, "identity_trust:") {
			t.Errorf("got %v", got)
		}
	}
}

// stream opens a delta stream that stays open.
func (g *gatedServer) stream(show showing, node *corev3.Node) *deltaClient {
	g.t.Helper()
	return g.streamOf(show, node, "identity_cert:default/backend")
}

// streamOf opens a delta stream that stays open, and gets a secret.
func (g *gatedServer) streamOf(show showing, node *corev3.Node, secret string) *deltaClient {
	g.t.Helper()
	config := &tls.Config{RootCAs: g.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if show.certificate != nil {
		config.Certificates = []tls.Certificate{*show.certificate}
	}
	conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(g.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	for _, a := range show.authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", a)
	}
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(g.t, err)
	c := &deltaClient{stream: stream, versions: map[string]map[string]string{}}
	c.follow(g.t, stream.Recv, cancel, func() { _ = conn.Close() })
	c.subscribe(node, sds, secret)
	c.next(sds)
	return c
}

func nameOf(t *testing.T, packed *anypb.Any) string {
	t.Helper()
	var secret tlsv3.Secret
	must(t, packed.UnmarshalTo(&secret))
	return secret.GetName()
}
