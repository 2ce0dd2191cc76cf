package xds_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// TestStreamsEndWithTheirCredential: when it is revoked, when its key is retired, when it expires, and when the
// Dataplane becomes another; and the streams of others go on.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	g := newGatedServer(t)
	bystander := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, 1000*time.Hour)),
		nodeOf("backend", ""))

	token, c, err := g.issuer.Issue(t.Context(), tokens.Claims{Audience: tokens.AudienceDataplane, Mesh: "default",
		Dataplane: "backend"}, 1000*time.Hour)
	must(t, err)
	revoked := g.stream(bearer(token), nodeOf("backend", ""))
	must(t, g.issuer.Revoke(t.Context(), c.ID, c.Expires))
	if err := revoked.fails(); status.Code(err) != codes.Unauthenticated || g.lastRefused() != "token revoked" {
		t.Errorf("revoked: %v, told %q", err, g.lastRefused())
	}

	byLabel := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Labels: map[string]string{"app": "backend"}},
		1000*time.Hour)), nodeOf("backend", ""))
	g.put(resources.TypeDataplane, "backend", `{"networking": {"address": "127.0.0.1", "inbound": [`+httpInbound+`]}}`,
		map[string]string{"app": "something-else"})
	if err := byLabel.fails(); status.Code(err) != codes.PermissionDenied || g.lastRefused() != "token another-proxy" {
		t.Errorf("relabelled: %v, told %q", err, g.lastRefused())
	}

	// What says something once and is heard for long, such as an access log, is asked again.
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization",
		"Bearer "+g.token(tokens.Claims{Mesh: "default", Labels: map[string]string{"app": "something-else"}}, time.Hour)))
	_, still, release, err := g.admission.Identify(ctx, nodeOf("backend", ""), func(error) {})
	must(t, err)
	defer release()
	must(t, still())
	g.dataplane("backend", httpInbound)
	if err := still(); status.Code(err) != codes.PermissionDenied || g.lastRefused() != "token another-proxy" {
		t.Errorf("relabelled: %v, told %q", err, g.lastRefused())
	}

	// The clock moves, and then something makes the gate look: a stream that opens with a credential that ends sooner.
	short := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, time.Hour)),
		nodeOf("backend", ""))
	g.mu.Lock()
	g.later = 2 * time.Hour
	g.mu.Unlock()
	must(t, g.issuer.Revoke(t.Context(), "somebody else", time.Now()))
	if err := short.fails(); status.Code(err) != codes.Unauthenticated || g.lastRefused() != "token expired" {
		t.Errorf("expired: %v, told %q", err, g.lastRefused())
	}
	// In real time, without anything that makes it look.
	soon := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, 12*time.Second)),
		nodeOf("backend", ""))
	if err := soon.fails(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("expired: %v", err)
	}

	old := g.issuer.Keys()[0].ID
	_, err = g.issuer.Rotate(t.Context())
	must(t, err)
	fresh := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, 1000*time.Hour)),
		nodeOf("backend", ""))
	select {
	case err := <-bystander.err:
		t.Fatalf("a stream of an unchanged credential ended: %v", err)
	default:
	}
	must(t, g.issuer.Retire(t.Context(), old))
	if err := bystander.fails(); status.Code(err) != codes.Unauthenticated || g.lastRefused() != "token unknown-key" {
		t.Errorf("retired: %v, told %q", err, g.lastRefused())
	}
	select {
	case err := <-fresh.err:
		t.Errorf("a stream of the new key ended: %v", err)
	default:
	}
}

// TestStreamsEndWithTheirAuthority: an authority that is retired by force, because its key is in wrong hands, ends the
// streams of whom it signed for, soon; those of others go on.
func TestStreamsEndWithTheirAuthority(t *testing.T) {
	t.Parallel()
	g := newGatedServer(t)
	first, err := g.authorities.For("default")
	must(t, err)
	signed := g.stream(showing{certificate: g.svid("backend")}, nodeOf("backend", ""))
	both := g.stream(showing{certificate: g.svid("backend"),
		authorization: bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, time.Hour)).authorization},
		nodeOf("backend", ""))
	next, err := g.authorities.Prepare(t.Context(), "default")
	must(t, err)
	must(t, g.authorities.Promote(t.Context(), "default", next))
	others := []*deltaClient{
		g.stream(showing{certificate: g.svid("backend")}, nodeOf("backend", "")),
		g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Dataplane: "backend"}, time.Hour)), nodeOf("backend", "")),
	}
	must(t, g.authorities.Retire(t.Context(), "default", first.ID(), true))
	for _, s := range []*deltaClient{signed, both} {
		if err := s.fails(); status.Code(err) != codes.Unauthenticated ||
			!strings.HasSuffix(g.lastRefused(), " unknown-authority") {
			t.Errorf("it ended with %v, told %q", err, g.lastRefused())
		}
	}
	for i, s := range others {
		select {
		case err := <-s.err:
			t.Errorf("stream %d of what is good ended: %v", i, err)
		default:
		}
	}
}

// TestANodeCannotChangeMidStream, with a credential too.
func TestANodeCannotChangeMidStream(t *testing.T) {
	t.Parallel()
	g := newGatedServer(t)
	c := g.stream(bearer(g.token(tokens.Claims{Mesh: "default", Labels: map[string]string{"app": "backend"}},
		time.Hour)), nodeOf("backend", ""))
	c.subscribe(nodeOf("frontend", ""), sds, "identity_cert:default/frontend")
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}
