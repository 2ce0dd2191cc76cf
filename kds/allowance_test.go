package kds

import (
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
		if got := a.take(c.parts, start.Add(c.at)); got != c.want {
			t.Errorf("%d: waits %s, want %s", i, got, c.want)
		}
	}
	if none := (*allowance)(nil); none.take(1<<30, start) != 0 {
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
