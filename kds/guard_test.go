package kds

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// refusing returns a validation that refuses resources with this display name.
func refusing(name string) func(*resources.Resource) error {
	return func(r *resources.Resource) error {
		if r.DisplayName() == name {
			return errors.New("it is poisoned")
		}
		return nil
	}
}

// typeOf returns one line of a status.
func typeOf(s tracker.SyncStatus, t resources.Type, direction string) tracker.TypeSync {
	for _, one := range s.Types {
		if one.Type == t && one.Direction == direction {
			return one
		}
	}
	return tracker.TypeSync{}
}

func TestRefusalsAreShownWhereTheResourceIsFrom(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	bad, badSpec := permission("bad")
	good, goodSpec := permission("good")
	put(t, s, written(t, globalHome, bad, badSpec), written(t, globalHome, good, goodSpec))
	g := startGlobal(t, s, func(c *GlobalConfig) {
		refuse := refusing("from-zone")
		c.Validate = func(r *resources.Resource, _ string) error { return refuse(r) }
	})
	own := store.NewMemory()
	up, upSpec := permission("from-zone")
	put(t, own, written(t, zoneHome("zone-1"), up, upSpec))
	z := startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) { c.Validate = refusing("bad") })
	eventually(t, "both refusals", func() bool { return len(g.Refused(bad)) == 1 && len(z.Refused(up)) == 1 })
	if find(own, good.Type, "good") == nil || len(g.Refused(good)) != 0 {
		t.Error("the good one was held up")
	}
	both := g.DigestRefusals("zone-1")
	if both == "" || g.DigestRefusals("zone-2") != "" {
		t.Errorf("the digest of two refusals is %q, that of a zone that was never here %q", both, g.DigestRefusals("zone-2"))
	}
	by := g.Refused(bad)[0]
	if by.Zone != "zone-1" || !strings.Contains(by.Reason, "poisoned") || by.Since.IsZero() {
		t.Errorf("refused by %+v", by)
	}
	if c := tracker.Conditions(g.Refused(bad)); len(c) != 1 || c[0].Status != resources.ConditionFalse ||
		!strings.Contains(c[0].Message, "zone-1") {
		t.Errorf("conditions %+v", c)
	}
	status, _ := g.Status("zone-1", bad.Type)
	refused := typeOf(status, bad.Type, "toZone").Refused
	if !status.Connected || len(refused) != 1 || refused[0].KRI != resources.KRIOf(s.Snapshot().Get(bad)).String() ||
		refused[0].By != "peer" {
		t.Errorf("status %+v", status)
	}

	// It is unchanged after a reconnect, and over once the resource changes.
	since := by.Since
	if ended, err := g.Resync(t.Context(), "zone-1"); !ended || err != nil {
		t.Error("no session to resync")
	}
	eventually(t, "a second session", func() bool {
		status, _ := g.Status("zone-1", "")
		return z.events.count(SessionStarted, "") == 2 && status.Connected
	})
	if again := g.Refused(bad); len(again) != 1 || !again[0].Since.Equal(since) {
		t.Errorf("after a reconnect: %+v", again)
	}
	remove(t, s, bad)
	eventually(t, "the refusal to end", func() bool { return len(g.Refused(bad)) == 0 })
	if one := g.DigestRefusals("zone-1"); one == "" || one == both {
		t.Errorf("with one refusal less the digest is %q, before it was %q", one, both)
	}
}

func TestLagIsZeroOnceAcknowledged(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	z := startZone(t, "zone-1", g.address, store.NewMemory())
	key, spec := permission("p")
	eventually(t, "a session", func() bool { return z.events.count(SessionStarted, "") == 1 })
	revision := put(t, s, written(t, globalHome, key, spec))
	line := func() tracker.TypeSync {
		status, _ := g.Status("zone-1", key.Type)
		return typeOf(status, key.Type, "toZone")
	}
	eventually(t, "the acknowledgement", func() bool { return line().Acknowledged >= revision })
	if l := line(); l.LagRevisions != 0 || l.LagSeconds != 0 || l.Sent == 0 || l.Sent != l.Acked {
		t.Errorf("in sync, and shown as %+v", l)
	}
	if l := typeOf(z.Status(key.Type), key.Type, "toZone"); l.Revision < revision {
		t.Errorf("the zone shows %+v", l)
	}
	z.stop()
	eventually(t, "the end of the session", func() bool { status, _ := g.Status("zone-1", ""); return !status.Connected })
	other, otherSpec := permission("q")
	put(t, s, written(t, globalHome, other, otherSpec))
	if l := line(); l.LagRevisions == 0 || l.LagSeconds <= 0 {
		t.Errorf("the zone is away and misses a permission, and is shown as %+v", l)
	}
}

func TestOperatorAcceptsHeldDeletions(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var keys []resources.Key
	for i := range 30 {
		key, spec := permission(fmt.Sprintf("p%d", i))
		keys = append(keys, key)
		put(t, s, written(t, globalHome, key, spec))
	}
	g := startGlobal(t, s)
	own := store.NewMemory()
	z := startZone(t, "zone-1", g.address, own)
	eventually(t, "all permissions", func() bool { return count(own, keys[0].Type) == 30 })
	z.stop()
	g.stop()

	// A global that lost its data sends an empty list.
	g = startGlobal(t, store.NewMemory())
	z = startZone(t, "zone-1", g.address, own)
	held := func() *tracker.HeldDeletions { return typeOf(z.Status(""), keys[0].Type, "toZone").Held }
	eventually(t, "the guard", func() bool { return held() != nil })
	if h := held(); h.Count != 30 || len(h.Names) != 30 || count(own, keys[0].Type) != 30 {
		t.Fatalf("held %+v of %d", h, count(own, keys[0].Type))
	}
	if _, err := z.AcceptDeletes(t.Context(), resources.TypeMeshTimeout, ""); err != nil || count(own, keys[0].Type) != 30 {
		t.Errorf("accepting another type removed something, or failed: %v", err)
	}
	if _, err := z.AcceptDeletes(t.Context(), "", "of others"); !errors.Is(err, store.ErrConflict) || count(own, keys[0].Type) != 30 {
		t.Errorf("accepting what nobody was shown: %v; %d are left", err, count(own, keys[0].Type))
	}
	if _, err := g.AcceptDeletes(t.Context(), "zone-9", "", "of others"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("accepting what was shown of a zone of which nothing is held: %v", err)
	}
	accepted, err := z.AcceptDeletes(t.Context(), "", held().Mark)
	if err != nil || len(accepted) != 1 || accepted[0].Count != 30 || count(own, keys[0].Type) != 0 || held() != nil {
		t.Errorf("accepted %+v, error %v; %d are left", accepted, err, count(own, keys[0].Type))
	}
}
