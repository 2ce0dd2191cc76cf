package global_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/global"
)

// TestRevocationEndsSessions checks that whatever revokes a zone's credential ends its session within seconds, that the
// zone cannot reconnect with it, and that another zone's session continues.
func TestRevocationEndsSessions(t *testing.T) {
	t.Parallel()
	keys := func(g *gated, purpose, retire string) {
		var before, after struct{ Keys []struct{ ID string } }
		g.post("/_keys/"+purpose+"/_rotate", "{}", &before)
		g.post("/_keys/"+purpose+"/"+before.Keys[1].ID+"/_retire", retire, &after)
		if len(after.Keys) != 1 || after.Keys[0].ID != before.Keys[0].ID {
			g.t.Errorf("after a rotation and a retirement there are %v, want %v only", after.Keys, before.Keys[0])
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*gated)
		// byToken is set if the zone uses a token; all if every zone is concerned.
		byToken, all bool
		code         codes.Code
		why          string
	}{
		{"revoked", func(g *gated) { g.post("/zones/zone-1/_revoke", "{}", nil) }, false, false,
			codes.Unauthenticated, "revoked"},
		{"expired", func(g *gated) { g.clock.advance(31 * 24 * time.Hour) }, false, true, codes.Unauthenticated, "expired"},
		{"replaced", func(g *gated) { g.join("zone-1") }, false, false, codes.Unauthenticated, "another server has joined"},
		{"authority retired", func(g *gated) { keys(g, "zone-ca", `{"force":true}`) }, false, true,
			codes.Unauthenticated, ""},
		{"disabled", func(g *gated) { g.post("/zones/zone-1/_disable", "{}", nil) }, false, false,
			codes.FailedPrecondition, "disabled"},
		{"deleted", func(g *gated) { g.post("/zones/zone-1/_delete", "{}", nil) }, false, false,
			codes.FailedPrecondition, "deleted"},
		{"token revoked", func(g *gated) { g.post("/zones/zone-1/_revoke", "{}", nil) }, true, false,
			codes.Unauthenticated, "revoked"},
		{"token expired", func(g *gated) { g.clock.advance(31 * 24 * time.Hour) }, true, true,
			codes.Unauthenticated, "expired"},
		{"token's key retired", func(g *gated) { keys(g, "token-signing", "{}") }, true, true, codes.Unauthenticated,
			"not accepted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := startGated(t)
			conn, token := g.dial(nil), []string(nil)
			if tt.byToken {
				token = []string{"Bearer " + g.zoneToken("zone-1", "cp")}
			} else {
				conn = g.dial(g.join("zone-1").pair)
			}
			other := g.open(g.dial(g.join("zone-2").pair), "zone-2")
			ended := g.open(conn, "zone-1", token...)
			tt.do(g)
			select {
			case err := <-ended:
				if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.why) {
					t.Errorf("the session ended with %v, want %s and %q", err, tt.code, tt.why)
				}
			case <-time.After(patience):
				t.Fatal("the session goes on")
			}
			if err := g.enter(conn, "zone-1", token...); err == nil && tt.name != "disabled" {
				t.Error("it is let in again")
			}
			if tt.all {
				return
			}
			select {
			case err := <-other:
				t.Errorf("the session of another zone ended: %v", err)
			default:
			}
		})
	}
}

// TestCredentialEndsAnonymousSession checks that the session of an anonymous zone ends once the zone has a credential, in
// each of its forms, and that another's goes on.
func TestCredentialEndsAnonymousSession(t *testing.T) {
	t.Parallel()
	g := startGated(t, func(c *global.Config) { c.KDSInsecureAnonymous = true })
	other := g.open(g.dial(nil), "zone-0")
	for zone, give := range map[string]func(zone string){
		"joined":    func(zone string) { g.join(zone) },
		"invited":   func(zone string) { g.joinToken(zone) },
		"has-token": func(zone string) { g.zoneToken(zone, "cp") },
	} {
		conn := g.dial(nil)
		ended := g.open(conn, zone)
		give(zone)
		select {
		case err := <-ended:
			if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "this zone has a credential") {
				t.Errorf("%s: the session ended with %v", zone, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the session goes on", zone)
		}
	}
	select {
	case err := <-other:
		t.Errorf("the session of another zone ended: %v", err)
	default:
	}
}

// patience bounds the wait for any background event.
const patience = 30 * time.Second

// TestDeletedZonesStayOut checks that the server of a deleted zone is not let in with what it had, neither while nobody
// has the name again nor afterwards, and that the one that joins in its place is.
func TestDeletedZonesStayOut(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	old := g.dial(g.join("zone-1").pair)
	g.must(g.enter(old, "zone-1"))
	refused := func(why string) {
		t.Helper()
		if err := g.enter(old, "zone-1"); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), why) {
			t.Errorf("it is answered with %v, want %q", err, why)
		}
	}
	g.post("/zones/zone-1/_delete", "{}", nil)
	refused("the zone was deleted")
	g.joinToken("zone-1")
	refused("registered anew")
	g.must(g.enter(g.dial(g.join("zone-1").pair), "zone-1"))
	refused("another server has joined")
}
