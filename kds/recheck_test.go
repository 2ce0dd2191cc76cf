package kds

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/resources/store"
)

// countedPass counts how often it is asked.
type countedPass struct {
	mu    sync.Mutex
	asked int       // guarded by mu
	until time.Time // guarded by mu
	ended error     // guarded by mu
}

func (p *countedPass) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.ended
}

func (p *countedPass) Until() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

func (p *countedPass) set(until time.Time, ended error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until, p.ended = until, ended
}

// count returns how often the pass was asked since the last call.
func (p *countedPass) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.asked
	p.asked = 0
	return n
}

// TestPassesAreAskedWhenDue checks which passes RecheckDue asks: those of sessions and held streams that are new, once, and
// all from the first moment at which one may end by the time, and when the clock is set back. A pass that has ended ends
// its session and its held stream. While nothing is due, it allocates nothing.
func TestPassesAreAskedWhenDue(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	pass, spare := &countedPass{}, &countedPass{}
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		c.Authenticate = func(ctx context.Context) (string, Pass, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			zone, err := ClientID(md)
			return zone, pass, err
		}
	})
	advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	startZone(t, "zone-1", g.address, store.NewMemory())
	eventually(t, "the session", func() bool { return g.InSession("zone-1") })
	held, release := context.WithCancelCause(t.Context())
	if _, err := g.hold(&heldStream{zone: "zone-1", connection: &connection{number: 1 << 60}, pass: spare, cancel: release}); err != nil {
		t.Fatal(err)
	}
	asked := func(what string, session, stream int) {
		t.Helper()
		g.RecheckDue()
		if a, b := pass.count(), spare.count(); a != session || b != stream {
			t.Errorf("%s: the session's pass is asked %d times, the stream's %d, want %d and %d", what, a, b, session, stream)
		}
	}
	asked("new ones", 1, 1)
	asked("nothing new", 0, 0)
	advance(1000 * time.Hour)
	asked("nothing that ends by the time", 0, 0)
	pass.set(now.Add(time.Hour), nil)
	spare.set(now.Add(2*time.Hour), nil)
	g.Recheck()
	asked("all were asked", 1, 1)
	advance(time.Hour - 1)
	if n := testing.AllocsPerRun(100, g.RecheckDue); n != 0 {
		t.Errorf("it allocates %v times while nothing is due", n)
	}
	asked("not yet", 0, 0)
	advance(1)
	asked("from that moment on", 1, 1)
	asked("until it is later", 1, 1)
	pass.set(now.Add(3*time.Hour), nil)
	asked("until it is known to be later", 1, 1)
	asked("later", 0, 0)
	mu.Lock()
	now = setBack(t, now, time.Minute)
	mu.Unlock()
	asked("the clock was set back", 1, 1)
	asked("the clock goes on", 0, 0)
	advance(2 * time.Hour)
	why := errors.New("it has expired")
	spare.set(time.Time{}, why)
	asked("the other one", 1, 1)
	if !errors.Is(context.Cause(held), why) {
		t.Errorf("the held stream ended with %v", context.Cause(held))
	}
	pass.set(time.Time{}, why)
	advance(2 * time.Hour)
	asked("the last", 1, 0)
	eventually(t, "the end of the session", func() bool {
		for _, err := range g.events.ends() {
			if errors.Is(err, why) {
				return true
			}
		}
		return false
	})
}

// setBack returns what the clock of a running process says after it has been set back: its monotonic part goes on.
func setBack(t *testing.T, now time.Time, by time.Duration) time.Time {
	t.Helper()
	const seconds = 30 // the number of bits below those of the seconds
	later := now.Add(1)
	(*struct{ wall, ext uint64 })(unsafe.Pointer(&later)).wall -= uint64(by/time.Second) << seconds
	if !later.After(now) || later.Round(0).Sub(now.Round(0)) != 1-by {
		t.Fatalf("%s after %s is not a clock that was set back: is time.Time another one now?", later, now)
	}
	return later
}
