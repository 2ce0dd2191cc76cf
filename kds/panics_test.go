package kds

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// watched is a log that tests read, with a guard that writes to it.
type watched struct {
	*panics.Guard
	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

func watch() *watched {
	w := &watched{}
	w.Guard = panics.New(slog.New(slog.NewTextHandler(w, nil)))
	return w
}

// Write implements io.Writer.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// caught returns the number of panics in the log.
func (w *watched) caught() int { return strings.Count(w.text(), panics.Message) }

// panicking panics for the zone called evil, at the places where KDS calls its callbacks.
type panicking struct {
	events
	kinds [Held + 1]atomic.Int64 // how often still, by kind of event
}

func (p *panicking) Observe(e Event) {
	if e.Zone == "evil" && p.kinds[e.Kind].Add(-1) >= 0 {
		panic(fmt.Sprintf("event %d", e.Kind))
	}
	p.events.Observe(e)
}

type panickingPass struct{ armed *atomic.Bool }

func (p panickingPass) Err() error {
	if p.armed.CompareAndSwap(true, false) {
		panic("a pass")
	}
	return nil
}

func (panickingPass) Until() time.Time { return time.Time{} }

// TestPanicEndsOneSession checks that a panic anywhere in serving a zone, under whatever locks, ends its session only,
// and that it can reconnect. Another zone keeps its session and gets all that is written meanwhile.
func TestPanicEndsOneSession(t *testing.T) {
	t.Parallel()
	w, seen := watch(), &panicking{}
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) {
		c.Panics, c.Observer = w.Guard, seen
		c.Validate = func(r *resources.Resource, system string) error {
			if strings.HasPrefix(r.DisplayName(), "poison") {
				panic("a resource")
			}
			return resources.ValidatePeer(r, system)
		}
	})
	quiet := store.NewMemory()
	honest := startZone(t, "honest", g.address, quiet)
	own := store.NewMemory()
	evil := startZone(t, "evil", g.address, own)
	eventually(t, "both zones", func() bool { return honest.Connected() && evil.Connected() })
	before := honest.events.count(SessionStarted, "")

	written := 0
	put1 := func() {
		written++
		key, spec := permission(fmt.Sprintf("p%d", written))
		put(t, g.store, writtenBy(t, key, spec))
	}
	caught := w.caught
	for _, kind := range []EventKind{Sent, Acknowledged, StreamOpened, SessionStarted, HealthChecked, SessionEnded} {
		was := caught()
		seen.kinds[kind].Store(3)
		if kind != Sent && kind != Acknowledged {
			g.End("evil", ErrResync)
		}
		for tries := 0; caught() == was; tries++ { // writes continue, so that flushes and answers meet the panic
			put1()
			eventually(t, "the honest zone to have it",
				func() bool { return count(quiet, resources.TypeMeshTrafficPermission) == written })
			if tries > 2000 {
				t.Fatalf("event %d was never met", kind)
			}
		}
		seen.kinds[kind].Store(0)
		eventually(t, "the zone to be back", func() bool {
			return evil.Connected() && count(own, resources.TypeMeshTrafficPermission) == written
		})
	}
	// What a zone sends: its session ends each time, until the resource is gone.
	was := caught()
	key, _ := permission("poison")
	key.Type = resources.TypeMeshService
	put(t, own, writtenByZone(t, "evil", key, `{"ports":[{"port":80}]}`))
	eventually(t, "the panic", func() bool { return caught() > was })
	put1()
	eventually(t, "the honest zone to have it",
		func() bool { return count(quiet, resources.TypeMeshTrafficPermission) == written })
	remove(t, own, key)
	eventually(t, "the zone to be back", func() bool {
		return evil.Connected() && count(own, resources.TypeMeshTrafficPermission) == written
	})
	if after := honest.events.count(SessionStarted, ""); after != before {
		t.Errorf("the honest zone had %d sessions, and now %d", before, after)
	}
	if log := w.text(); !strings.Contains(log, panics.Message) || !strings.Contains(log, "kds.(*panicking).Observe") {
		t.Errorf("the log has no stack: %.2000s", log)
	}
	g.stop() // ends only once no lock is held and no stream is left
}

func writtenBy(t *testing.T, key resources.Key, spec string) *resources.Resource {
	t.Helper()
	return written(t, globalHome, key, spec)
}

func writtenByZone(t *testing.T, zone string, key resources.Key, spec string) *resources.Resource {
	t.Helper()
	return written(t, zoneHome(zone), key, spec)
}

// TestPanicInAPass checks a panic in a Pass: one goroutine checks those of all sessions, under the lock of the
// sessions.
func TestPanicInAPass(t *testing.T) {
	t.Parallel()
	w, armed := watch(), &atomic.Bool{}
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Panics = w.Guard })
	var zones []*testZone
	for _, name := range []string{"evil", "honest"} {
		z := startZone(t, name, g.address, store.NewMemory())
		eventually(t, "the zone", z.Connected)
		zones = append(zones, z)
	}
	eventually(t, "the sessions of both", func() bool { return g.InSession("evil") && g.InSession("honest") })
	g.mu.Lock()
	for name, s := range g.sessions {
		if name == "evil" {
			s.pass = panickingPass{armed}
		}
	}
	g.mu.Unlock()
	ends := func(z *testZone) int { return z.events.count(SessionEnded, "") }
	evil, honest := ends(zones[0]), ends(zones[1]) // on a busy machine a first session may have ended by itself
	armed.Store(true)
	g.Recheck()
	eventually(t, "the end of the session", func() bool { return ends(zones[0]) > evil })
	eventually(t, "the next one", zones[0].Connected)
	if ends(zones[1]) > honest || w.caught() != 1 {
		t.Errorf("the honest zone's session ended, or %d panics were caught", w.caught())
	}
}

// TestPanicInAZone checks that a message of the global that makes the zone panic ends the session, and that the zone
// reconnects.
func TestPanicInAZone(t *testing.T) {
	t.Parallel()
	w, armed := watch(), &atomic.Bool{}
	g := startGlobal(t, store.NewMemory())
	s := store.NewMemory()
	z := startZone(t, "zone-1", g.address, s, func(c *ZoneConfig) {
		c.Panics = w.Guard
		c.Validate = func(r *resources.Resource) error {
			if armed.CompareAndSwap(true, false) {
				panic("a resource")
			}
			return resources.ValidateSpec(r)
		}
	})
	eventually(t, "the zone", z.Connected)
	armed.Store(true)
	key, spec := permission("p")
	put(t, g.store, written(t, globalHome, key, spec))
	eventually(t, "the resource after all", func() bool { return count(s, key.Type) == 1 })
	if n := w.caught(); n != 1 || z.events.count(SessionStarted, "") != 2 {
		t.Errorf("%d panics were caught in %d sessions", n, z.events.count(SessionStarted, ""))
	}
}

// poisoned is a mapping that panics for some resources.
type poisoned struct{ *exchange.Mapping }

func (p *poisoned) Outbound(r *resources.Resource, a *exchange.Audience) (*resources.Resource, error) {
	if strings.HasPrefix(r.DisplayName(), "poison") {
		panic("a step")
	}
	return p.Mapping.Outbound(r, a)
}

// TestPanicOfAnEncoding checks that a resource whose encoding panics is withheld by name, and the next one is sent.
func TestPanicOfAnEncoding(t *testing.T) {
	t.Parallel()
	w := watch()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Panics = w.Guard })
	g.encoder.mapping = &poisoned{g.mapping}
	for _, name := range []string{"poison", "sound"} {
		key, spec := permission(name)
		put(t, g.store, written(t, globalHome, key, spec))
	}
	for _, name := range []string{"zone-1", "zone-2"} {
		s := store.NewMemory()
		z := startZone(t, name, g.address, s)
		eventually(t, "the sound one", func() bool { return find(s, resources.TypeMeshTrafficPermission, "sound") != nil })
		if len(g.Refusals(name)) != 1 || z.events.count(SessionEnded, "") > 0 {
			t.Errorf("%s: refusals %v, %d sessions ended", name, g.Refusals(name), z.events.count(SessionEnded, ""))
		}
	}
	if n := w.caught(); n != 1 {
		t.Errorf("%d panics were caught: it is encoded once", n)
	}
}
