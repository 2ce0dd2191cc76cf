package kds

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestAllowance checks what a zone may change at once and for long, and that it gets back no more than that.
func TestAllowance(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	a := newAllowance(10, start)
	const second = 10 * costOfChange
	for i, c := range []struct {
		at    time.Duration
		parts int
		want  time.Duration
	}{
		{0, changesAtOnce * second, 0},
		{0, second, time.Second},
		{time.Second, second / 2, 500 * time.Millisecond},
		{0, second, 1500 * time.Millisecond}, // the clock was set back
		{10 * time.Second, 0, 0},
		{24 * time.Hour, changesAtOnce*second + second, time.Second},
	} {
		if got := a.spend(c.parts, start.Add(c.at)); got != c.want {
			t.Errorf("%d: waits %s, want %s", i, got, c.want)
		}
	}
	if none := (*allowance)(nil); none.spend(1<<30, start) != 0 {
		t.Error("none ends")
	}
}

// TestAZoneThatChangesWithoutEnd checks that a zone whose allowance is used up waits, also with a new session, that its
// status says so, and that another zone does not wait.
func TestAZoneThatChangesWithoutEnd(t *testing.T) {
	const changes, each, wait = 20, 192, 1600 * time.Millisecond
	now := time.Now()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) {
		c.Limits, c.Now = Limits{Changes: changes}, func() time.Time { return now } // nothing comes back
	})
	change := func(p *peer, nonce int) {
		var all []*discovery.Resource
		for i := range each {
			all = append(all, wireOf(t, p.name, written(t, zoneHome(p.name), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
				Name: fmt.Sprintf("s-%d", i)}, fmt.Sprintf(`{"selector":{"dataplaneTags":{"app":"v-%d"}}}`, nonce))))
		}
		if answer := p.send(resources.TypeMeshService, fmt.Sprint(nonce), nil, all...); answer.GetErrorDetail() != nil {
			t.Fatal(answer.GetErrorDetail().GetMessage())
		}
	}
	big, small := dialPeer(t, "big", g.address, exchange.OwnFeatures()), dialPeer(t, "small", g.address, exchange.OwnFeatures())
	big.openUp()
	small.openUp()
	var begun time.Time
	for i := range 20 { // 20 x 192 x 21 parts, of 20 x 20 x 200
		begun = time.Now()
		change(big, i)
	}
	eventually(t, "the status to say it", func() bool {
		status, _ := g.Status("big", "")
		return slices.ContainsFunc(status.Over, func(o tracker.OverLimit) bool {
			return o.Limit == tracker.LimitChanges && o.Most == changes
		})
	})
	change(small, 0)
	if status, _ := g.Status("small", ""); len(status.Over) > 0 {
		t.Errorf("another zone: %+v", status.Over)
	}
	again := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	again.openUp()
	change(again, 20)
	if took := time.Since(begun); took < wait {
		t.Errorf("a new session waited for %s, want %s", took, wait)
	}
}

// hangingUp is a store that calls hangUp once it has stored changes of the zone "big", before it says so.
type hangingUp struct {
	store.Store
	hangUp func()
}

func (s *hangingUp) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	c, err := s.Store.Apply(ctx, b)
	if err == nil && writerOf(b) == "big" {
		s.hangUp()
	}
	return c, err
}

// TestAZoneThatHangsUpPaysForItsChanges has a zone hang up when its changes, or the first of them, are stored, and before
// it has the answer: they count all the same.
func TestAZoneThatHangsUpPaysForItsChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ changes, stored int }{
		"before the answer":   {changes: 100, stored: 100},
		"between two turns":   {changes: 600, stored: minBatch},
		"before the last one": {changes: minBatch + 1, stored: minBatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 20
			now := time.Now()
			s := &hangingUp{Store: store.NewMemory()}
			g := startGlobal(t, s, func(c *GlobalConfig) {
				c.Limits, c.Now = Limits{Changes: most}, func() time.Time { return now } // nothing comes back
			})
			big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
			s.hangUp = func() {
				g.mu.Lock()
				current := g.sessions["big"]
				g.mu.Unlock()
				_ = big.conn.Close()
				<-current.ctx.Done()
			}
			big.openUp()
			if err := big.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: string(resources.TypeMeshService), Nonce: "1",
				Resources: servicesOf(t, "big", c.changes, 0)}); err != nil {
				t.Fatal(err)
			}
			full := float64(most * costOfChange * changesAtOnce)
			eventually(t, fmt.Sprintf("%d changes to be paid", c.stored), func() bool {
				a := g.data("big").allowance
				a.mu.Lock()
				defer a.mu.Unlock()
				return a.tokens <= full-float64(c.stored*costOfChange)
			})
			if n := count(s, resources.TypeMeshService); n != c.stored {
				t.Errorf("%d changes are stored, want %d", n, c.stored)
			}
		})
	}
}
