package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// apartReplicas are two replicas on one etcd, each with a clock of its own.
type apartReplicas struct {
	*replicated
	clocks []*cluster.Clock
}

func newApart(t *testing.T) *apartReplicas {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := cluster.BuildWithClocks(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	a := &apartReplicas{replicated: &replicated{etcd: etcdtest.Start(t, 1)}}
	a.mesh = newClusterOf(t, bin)
	args := []string{"--store", "etcd", "--etcd-endpoints", strings.Join(a.etcd.Endpoints(), ",")}
	for i := range 2 {
		clock, err := cluster.NewClock(filepath.Join(t.TempDir(), "clock"))
		a.must(err)
		t.Cleanup(func() { _ = clock.Close() })
		g, err := a.StartGlobal(t.Context(), cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i), Args: args, Clock: clock})
		a.must(err)
		a.globals, a.clocks = append(a.globals, g), append(a.clocks, clock)
		if i == 0 {
			args = append(args, "--secrets-key-file", filepath.Join(g.DataDir, "secrets.key"))
		}
	}
	a.global = a.globals[0]
	a.eventually("join strings with both replicas", func(ctx context.Context) error {
		var offer struct{ Addresses []string }
		err := a.global.API.Do(ctx, http.MethodPost, "/zones/zone-0/_join", map[string]bool{"rejoin": true}, &offer)
		if err == nil && len(offer.Addresses) != 2 {
			err = fmt.Errorf("addresses %q", offer.Addresses)
		}
		return err
	})
	for i := range 2 {
		a.startZone(fmt.Sprint("zone-", i))
	}
	return a
}

// TestFaultsClocksOfReplicas sets the clock of one of two replicas 10 minutes, and in the long form a year, ahead and back.
// Both still know each other and every zone, a zone goes from one to the other and back, what one acknowledges the other
// shows, what one revokes the other refuses, and with the clocks set right doctor finds nothing.
func TestFaultsClocksOfReplicas(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	leaps := []time.Duration{10 * time.Minute, -10 * time.Minute}
	if *faultsLong {
		leaps = append(leaps, 365*day, -365*day)
	}
	for _, leap := range leaps {
		a.must(a.clocks[1].Set(leap))
		a.leapt(leap)
		a.must(a.clocks[1].Set(0))
		a.together()
		for _, s := range []*cluster.Server{a.globals[0], a.globals[1], a.zones["zone-0"], a.zones["zone-1"]} {
			a.noProblems(s.API.URL())
		}
	}
}

// leapt checks both replicas while the clock of the second is set by leap.
func (a *apartReplicas) leapt(leap time.Duration) {
	a.t.Helper()
	near := leap.Abs() < time.Hour
	for i, g := range a.globals {
		name := fmt.Sprintf("of-%d-%d", i, int(leap.Hours()))
		a.apply(g, timeout(name, "10s"))
		a.arrives(a.globals[1-i], name)
		if near {
			a.tokenEnds(g, a.globals[1-i])
		}
	}
	if near {
		a.together()
	}
	for i, g := range a.globals { // zones go to the one that stays
		other := a.globals[1-i]
		g.Kill()
		name := fmt.Sprintf("without-%d-%d", i, int(leap.Hours()))
		a.apply(other, timeout(name, "10s"))
		for _, zone := range a.zones {
			if near {
				a.arrives(zone, name)
			}
		}
		a.must(g.Start(a.t.Context()))
		a.arrives(g, name)
	}
}

// together waits until both say the same of all zones, and writes reach every zone.
func (a *apartReplicas) together() {
	a.t.Helper()
	a.must(cluster.Until(a.t.Context(), reconnectPatience, "all zones to have a session", func(ctx context.Context) error {
		for _, zone := range a.zones {
			if err := inSession(ctx, zone); err != nil {
				return err
			}
		}
		return nil
	}))
	a.agree(a.globals...)
	for i, g := range a.globals {
		name := fmt.Sprint("together-", i)
		a.apply(g, timeout(name, fmt.Sprintf("%ds", 10+time.Now().Second())))
		for _, zone := range a.zones {
			a.arrives(zone, name)
		}
	}
}

// tokenEnds issues a token on one replica, which the other accepts, and revokes it there, which the first one knows.
func (a *apartReplicas) tokenEnds(on, other *cluster.Server) {
	a.t.Helper()
	raw, err := post(a.t.Context(), on, "/tokens/user", map[string]any{"name": "alice", "validFor": "1h"})
	a.must(err)
	token := strings.TrimSpace(string(raw))
	status, said, err := asked(a.t.Context(), other, http.MethodGet, "/who-am-i", token, nil)
	if err != nil || status != http.StatusOK {
		a.t.Errorf("%s answers a token of %s with %d %s (%v)", other.Name(), on.Name(), status, said, err)
		return
	}
	var me struct{ Credential string }
	a.must(json.Unmarshal(said, &me))
	_, err = post(a.t.Context(), other, "/tokens/user/"+me.Credential+"/_revoke", nil)
	a.must(err)
	a.eventually(on.Name()+" to refuse it", func(ctx context.Context) error {
		status, _, err := asked(ctx, on, http.MethodGet, "/who-am-i", token, nil)
		if err == nil && status != http.StatusUnauthorized {
			err = fmt.Errorf("it answers %d", status)
		}
		return err
	})
}
