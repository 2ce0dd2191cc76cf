package global_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// loseStore removes the store and the audit log: without only one of them, the global does not start.
func (g *gated) loseStore() {
	g.t.Helper()
	g.must(os.Remove(filepath.Join(g.dir, "causeway.db")))
	if err := refusesToStart(g.t, g.dir); !errors.Is(err, backend.ErrLost) {
		g.t.Errorf("without its store it starts, or says %v", err)
	}
	g.must(os.RemoveAll(filepath.Join(g.dir, "audit")))
}

// rebuilt restarts the global without its store, with the same folder and address.
func (g *gated) rebuilt() *gated {
	g.t.Helper()
	g.must(g.stop())
	g.loseStore()
	again := *g
	again.running = start(g.t, g.dir, func(c *global.Config) {
		c.KDSInsecureAnonymous, c.Now = false, g.clock.Now
	})
	g.stop = func() error { return nil }
	g.t.Cleanup(func() {
		if err := again.stop(); err != nil {
			g.t.Error(err)
		}
	})
	return &again
}

type listedCandidates struct {
	Items []struct{ Zone, ID, Serial string }
}

func (g *gated) listed() (out listedCandidates) {
	g.t.Helper()
	code, body := g.call("GET", "/_adoptions", "")
	if code != 200 {
		g.t.Fatal(code, body)
	}
	g.must(json.Unmarshal([]byte(body), &out))
	return out
}

// TestAdoption checks a global that lost its store and kept its folder: it rejects zones with its certificates, says
// how they are readmitted, and admits those that an operator names.
func TestAdoption(t *testing.T) {
	t.Parallel()
	first := startGated(t)
	one, other := first.join("zone-1"), first.join("zone-2")
	g := first.rebuilt()
	if code, body := g.call("POST", "/zones/zone-1/_adopt", "{}"); code != 409 || !strings.Contains(body, "no server") {
		t.Errorf("a zone that never asked: %d %s", code, body)
	}
	for range 3 {
		if err := g.enter(g.dial(one.pair), "zone-1"); status.Code(err) != codes.Unauthenticated ||
			!strings.Contains(err.Error(), "zone adopt") {
			t.Fatalf("a zone that the store does not know: %v", err)
		}
	}
	if err := g.enter(g.dial(other.pair), "zone-2"); err == nil {
		t.Fatal("zone-2 is let in")
	}
	if got := g.listed(); len(got.Items) != 2 || got.Items[0].Zone != "zone-1" || got.Items[0].ID != one.id {
		t.Errorf("listed are %+v", got)
	}
	g.post("/zones/zone-1/_adopt", "{}", nil)
	if err := g.enter(g.dial(one.pair), "zone-1"); err != nil {
		t.Errorf("adopted, and turned away: %v", err)
	}
	if err := g.enter(g.dial(other.pair), "zone-2"); err == nil {
		t.Error("zone-2 is let in, and was not named")
	}
	if got := g.listed(); len(got.Items) != 1 || got.Items[0].Zone != "zone-2" {
		t.Errorf("afterwards listed are %+v", got)
	}
	g.clock.advance(11 * time.Minute)
	if got := g.listed(); len(got.Items) != 0 {
		t.Errorf("remembered too long: %+v", got)
	}
	if err := g.enter(g.dial(g.forged("zone-3", nil)), "zone-3"); err == nil || len(g.listed().Items) != 0 {
		t.Errorf("a forged certificate: %v, listed %+v", err, g.listed())
	}
	for body, want := range map[string]int{`{"id":"x"}`: 409, `{"colour":"blue"}`: 400} {
		if code, answer := g.call("POST", "/zones/zone-1/_adopt", body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, answer := g.call("POST", "/zones/Zone_1/_adopt", "{}"); code != 400 {
		t.Errorf("no name of a zone: %d %s", code, answer)
	}
}

// TestAdoptionOfOneOfTwo checks that the operator chooses if two servers claim to be one zone.
func TestAdoptionOfOneOfTwo(t *testing.T) {
	t.Parallel()
	first := startGated(t)
	old := first.join("zone-1")
	first.clock.advance(time.Hour)
	young := first.join("zone-1")
	g := first.rebuilt()
	for _, s := range []*joiner{old, young} {
		if err := g.enter(g.dial(s.pair), "zone-1"); err == nil {
			t.Fatal("let in")
		}
	}
	if code, body := g.call("POST", "/zones/zone-1/_adopt", "{}"); code != 409 || !strings.Contains(body, old.id) ||
		!strings.Contains(body, young.id) {
		t.Errorf("%d %s", code, body)
	}
	g.post("/zones/zone-1/_adopt", `{"id":"`+young.id+`"}`, nil)
	if err := g.enter(g.dial(young.pair), "zone-1"); err != nil {
		t.Error(err)
	}
	if err := g.enter(g.dial(old.pair), "zone-1"); err == nil ||
		!strings.Contains(err.Error(), "another server has joined") {
		t.Errorf("the one that was replaced long ago: %v", err)
	}
}

// TestRevokedAreNotAdopted checks that zones that the store has as revoked or deleted stay out.
func TestRevokedAreNotAdopted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"_revoke", "_delete"} {
		g := startGated(t)
		s := g.join("zone-1")
		g.clock.advance(time.Hour)
		g.post("/zones/zone-1/"+how, "{}", nil)
		if err := g.enter(g.dial(s.pair), "zone-1"); err == nil || strings.Contains(err.Error(), "adopt") {
			t.Errorf("%s: %v", how, err)
		}
		if code, body := g.call("POST", "/zones/zone-1/_adopt", "{}"); code != 409 {
			t.Errorf("%s: adopted: %d %s", how, code, body)
		}
	}
}

// refusesToStart returns the error of a global that cannot start on a folder; nil for one that starts.
func refusesToStart(t *testing.T, dir string) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return global.Run(ctx, global.Config{
		DataDir: dir, APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0",
		KDSTLS: true, Log: slog.New(slog.DiscardHandler),
	})
}

// TestZoneCABesideTheStore checks that the copy follows rotations, and that a copy that cannot be opened never leads to
// a silent new CA.
func TestZoneCABesideTheStore(t *testing.T) {
	t.Parallel()
	first := startGated(t)
	before := first.join("zone-1")
	first.post("/_keys/zone-ca/_rotate", "{}", nil)
	after := first.join("zone-2")
	g := first.rebuilt()
	for _, s := range []*joiner{before, after} {
		if err := g.enter(g.dial(s.pair), s.zone); err == nil || !strings.Contains(err.Error(), "zone adopt") {
			t.Errorf("%s: %v", s.zone, err)
		}
	}
	g.must(g.stop())
	g.stop = func() error { return nil }
	path := filepath.Join(g.dir, "kds-tls", "zone-ca.sealed")
	sealed, err := os.ReadFile(path)
	g.must(err)
	sealed[len(sealed)-1] ^= 1
	g.must(os.WriteFile(path, sealed, 0o600))
	g.loseStore()
	if err := refusesToStart(t, g.dir); err == nil || !strings.Contains(err.Error(), "zone-ca.sealed") {
		t.Errorf("it starts, or says only %v", err)
	}
}
