package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// revokedFrontend is the mesh operator's deny of a client that its service's owner allows.
var revokedFrontend = fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: revoked, spec: {default: {deny: [{spiffeId: {type: Exact, value: %q}}]}}}`,
	spiffeID("zone-1", "frontend"))

// cutWithin limits how long a revoked client may still be served after its zone has a session again.
const cutWithin = 10 * time.Second

// revoking is two Envoys under requests, and a client that the global revokes repeatedly.
type revoking struct {
	*restartEnvoys
	rng     *rand.Rand
	slowest time.Duration
}

func newRevoking(t *testing.T, zones ...string) *revoking {
	t.Helper()
	r := &revoking{restartEnvoys: &restartEnvoys{enforcement: &enforcement{mesh: newMesh(t, zones...)}},
		rng: rand.New(rand.NewPCG(*crashSeed, 17))}
	r.zone1 = r.zones["zone-1"]
	r.start()
	return r
}

// frontendGets checks the status that the client gets.
func (r *revoking) frontendGets(ctx context.Context, want int) error {
	status, body, err := r.frontend.Get(ctx, r.backend.Inbound("http-port").Port, "/")
	if err == nil && status != want {
		err = fmt.Errorf("it gets %d %.100s", status, body)
	}
	return err
}

// stays checks for a while that the client is denied.
func (r *revoking) stays(what string) {
	r.t.Helper()
	for range 20 {
		if err := r.frontendGets(r.t.Context(), http.StatusForbidden); err != nil {
			r.t.Errorf("%s: the revoked client: %v", what, err)
			return
		}
		during(r.t.Context(), 20*time.Millisecond)
	}
}

// under runs work during requests from Envoy to Envoy, none of which may fail.
func (r *revoking) under(work func()) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return r.keepAsking(ctx) })
	work()
	r.eventually("enough calls", func(context.Context) error { return more(r.calls.Load()) })
	stop()
	if err := g.Wait(); err != nil {
		r.t.Error(err)
	}
	r.t.Logf("%d requests from Envoy to Envoy", r.calls.Load())
}

// TestFaultsRevokedWhileZoneIsAway revokes a client while its zone is down, and kills the zone again during its starts.
// The client is denied soon after the zone is back, and stays denied when the zone is killed and restarts without the
// global. No request of another client fails.
func TestFaultsRevokedWhileZoneIsAway(t *testing.T) {
	t.Parallel()
	rounds, starts := 2, 2
	if *faultsLong {
		rounds, starts = 15, 5
	}
	r, kills := newRevoking(t, "zone-1"), 0
	r.under(func() {
		for range rounds {
			r.zone1.Kill()
			r.apply(r.global, revokedFrontend)
			for range starts {
				r.must(r.zone1.Process.Start())
				during(t.Context(), time.Duration(r.rng.IntN(700))*time.Millisecond)
				r.zone1.Kill()
			}
			r.must(r.zone1.Start(t.Context()))
			r.cut()
			r.zone1.Kill()
			r.stays("without a zone")
			r.global.Pause()
			err := r.zone1.Start(t.Context())
			r.stays("with a zone that has no global")
			r.global.Resume()
			r.must(err)
			r.remove(r.global, revokedFrontend)
			r.eventually("the client to be let in again",
				func(ctx context.Context) error { return r.frontendGets(ctx, http.StatusOK) })
			kills += starts + 2
		}
	})
	t.Logf("%d kills of the zone; the client was cut %s after the zone had a session, at the latest", kills,
		r.slowest.Round(time.Millisecond))
}

// cut waits until the revoked client is denied, and counts from the zone's session on.
func (r *revoking) cut() {
	r.t.Helper()
	r.must(connected(r.t.Context(), r.zone1))
	begun := time.Now()
	r.must(cluster.Until(r.t.Context(), cutWithin, "the revoked client to be denied",
		func(ctx context.Context) error { return r.frontendGets(ctx, http.StatusForbidden) }))
	r.slowest = max(r.slowest, time.Since(begun))
}

// pausable is a process that SIGSTOP stops.
type pausable interface {
	Pause()
	Resume()
}

// TestFaultsPairs stops two processes at once, of servers and Envoys, during writes, and continues them in both orders.
// No acknowledged write is lost, and a client that was revoked meanwhile is denied, and not served again. The global
// reports the absent zones, if they are away long enough, and doctor finds nothing afterwards.
func TestFaultsPairs(t *testing.T) {
	t.Parallel()
	r := newRevoking(t, "zone-1", "zone-2")
	zone2 := r.zones["zone-2"]
	l := newLedger(r.global, "g", "meshtrafficpermissions", permissionOf, permissionValue)
	for _, pair := range [][2]pausable{{r.global, r.zone1}, {r.zone1, r.backend.Proxy}, {r.zone1, zone2}} {
		r.stopped(l, pair[0], pair[1])
		r.stopped(l, pair[1], pair[0])
	}
	t.Logf("%d acknowledged writes; the client was cut after %s at the latest", l.written, r.slowest)
}

// stopped stops two processes, and continues first before second.
func (r *revoking) stopped(l *ledger, first, second pausable) {
	r.t.Helper()
	lasts := time.Second
	if *faultsLong {
		lasts = pastSession
	}
	ctx, end := context.WithCancel(r.t.Context())
	defer end()
	var g errgroup.Group
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
	g.Go(func() error { return l.insist(ctx, rng) })
	for _, p := range []pausable{first, second} {
		p.Pause()
		r.t.Cleanup(p.Resume) // a stopped process does not end by SIGTERM
	}
	runs := first != pausable(r.global) && second != pausable(r.global)
	if runs {
		r.apply(r.global, revokedFrontend)
	}
	during(r.t.Context(), lasts)
	if runs && *faultsLong {
		r.names(r.global.API.URL(), "zone", "zone-1", "offline since")
	}
	first.Resume()
	during(r.t.Context(), lasts/4)
	second.Resume()
	r.apply(r.global, revokedFrontend)
	end()
	r.must(g.Wait())
	r.must(l.settle(r.t.Context()))
	r.comeBack(l)
}

// comeBack checks that no effect of the stop remains, and allows the revoked client again.
func (r *revoking) comeBack(l *ledger) {
	r.t.Helper()
	servers := []*cluster.Server{r.zone1, r.zones["zone-2"]}
	for _, zone := range servers {
		r.must(cluster.Until(r.t.Context(), reconnectPatience, zone.Name()+" to agree",
			func(ctx context.Context) error { return l.agrees(ctx, zone) }))
	}
	r.cut()
	r.stays("after both continued")
	r.remove(r.global, revokedFrontend)
	r.eventually("the client to be let in again",
		func(ctx context.Context) error { return r.frontendGets(ctx, http.StatusOK) })
	for _, s := range append(servers, r.global) {
		r.noProblems(s.API.URL())
	}
}
