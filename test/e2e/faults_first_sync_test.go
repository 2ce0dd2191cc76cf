package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsFirstSync kills a zone and its global in turn, repeatedly, during the zone's first sync. In the end the
// zone has every policy once, including those written meanwhile.
func TestFaultsFirstSync(t *testing.T) {
	t.Parallel()
	policies, kills, weather := 5_000, 4, cluster.Weather{BytesPerSecond: 2 << 20} // a slow link
	if *faultsLong {
		policies, kills, weather = 100_000, 20, cluster.Weather{}
	}
	m := newMesh(t)
	link, err := cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	link.Set(weather)
	begun := time.Now()
	m.writes(policies, "10s")
	t.Logf("%d policies written in %s", policies, time.Since(begun).Round(time.Millisecond))
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: link})
	m.must(err)
	random := rand.New(rand.NewPCG(*crashSeed, 16))
	inTheMiddle := 0
	for i := range kills {
		during(t.Context(), time.Duration(100+random.IntN(300+policies/100))*time.Millisecond)
		if has := countOf(t.Context(), zone); has < policies {
			inTheMiddle++
		}
		victim := []*cluster.Server{zone, m.global}[i%2]
		victim.Kill()
		started := time.Now()
		m.must(victim.Start(t.Context()))
		t.Logf("kill %d: %s starts in %s", i, victim.Name(), time.Since(started).Round(time.Millisecond))
		m.must(m.global.API.Put(t.Context(), fmt.Sprintf("/meshes/default/meshtimeouts/late-%d", i),
			timeoutOf(fmt.Sprintf("late-%d", i), "1")))
	}
	begun = time.Now()
	m.fillsUp(zone, policies+kills)
	t.Logf("%d policies, %d kills, %d of them before the zone had all; it had them %s after the last", policies, kills,
		inTheMiddle, time.Since(begun).Round(time.Millisecond))
	if inTheMiddle == 0 {
		t.Error("no kill came in time to show anything")
	}
	m.must(sameTimeouts(t.Context(), m.global, zone))
	m.noProblems(m.global.API.URL())
	m.noProblems(zone.API.URL())
}

// writes writes thousands of policies with a value.
func (m *mesh) writes(policies int, value string) {
	m.t.Helper()
	for begin := 0; begin < policies; begin += 1000 {
		var documents bytes.Buffer
		for i := begin; i < begin+1000; i++ {
			documents.WriteString("---\n" + timeout(fmt.Sprintf("t%d", i), value))
		}
		_, err := m.CTL(m.t.Context(), m.global, &documents, "apply", "-f", "-")
		m.must(err)
	}
}

// countOf returns the number of a server's policies, or -1 if it does not answer.
func countOf(ctx context.Context, s *cluster.Server) int {
	var page struct{ Total int }
	if s.API.Get(ctx, "/meshes/default/meshtimeouts?size=1", &page) != nil {
		return -1
	}
	return page.Total
}

// fillsUp waits until a server has a number of policies, as long as it has more of them every minute.
func (m *mesh) fillsUp(s *cluster.Server, policies int) {
	m.t.Helper()
	for had := -1; had != policies; {
		m.eventually(fmt.Sprintf("%s to have more than %d of %d", s.Name(), had, policies), func(ctx context.Context) error {
			has := countOf(ctx, s)
			if has <= had {
				return errNotYet
			}
			had = has
			return nil
		})
	}
}
