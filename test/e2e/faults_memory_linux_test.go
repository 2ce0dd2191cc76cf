package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsMemory makes a global, and then a zone, exceed the memory of their cgroup, so that the kernel kills them
// during writes. After a restart, acknowledged writes are there, the zone has all of them, and no request from Envoy to
// Envoy is lost.
func TestFaultsMemory(t *testing.T) {
	t.Parallel()
	limit, err := cluster.NewMemoryLimit(56 << 20)
	if errors.Is(err, cluster.ErrNoMemoryLimits) {
		t.Log(err) // which is no failure of the server
		return
	}
	b := &badLinks{mesh: newMesh(t, "zone-1")}
	b.must(err)
	t.Cleanup(func() { // after the processes have ended
		if err := limit.Close(); err != nil {
			t.Error(err)
		}
	})
	zone := b.zones["zone-1"]
	envoys := &restartEnvoys{enforcement: &enforcement{mesh: b.mesh, zone1: zone}}
	envoys.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return envoys.keepAsking(ctx) })
	kept := 0
	before, err := permissions(t.Context(), zone)
	b.must(err)
	for _, s := range []*cluster.Server{b.global, zone} {
		b.must(limit.Hold(s.Process))
		for ; s.Alive() == nil; kept++ {
			if err := b.put(fmt.Sprint("kept-", kept), 1000); err != nil {
				t.Logf("policy %d was not acknowledged: %v", kept, err)
				break
			}
			if kept > 2000 {
				t.Fatalf("%s lives on with %d large policies", s.Name(), kept)
			}
		}
		b.eventually(s.Name()+" to be killed", func(context.Context) error {
			if s.Alive() == nil {
				return errNotYet
			}
			return nil
		})
		if err := s.Alive(); !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("%s ended otherwise: %v", s.Name(), err)
		}
		b.must(s.Start(t.Context()))
		for i := range kept {
			b.must(b.global.API.Get(t.Context(), fmt.Sprint("/meshes/default/meshtrafficpermissions/kept-", i), nil))
		}
		b.eventually("the zone to have them", func(ctx context.Context) error {
			if now, err := permissions(ctx, zone); err != nil || now < before+kept {
				return fmt.Errorf("it has %d, and had %d before %d came: %w", now, before, kept, errors.Join(err, errNotYet))
			}
			return nil
		})
	}
	cancel()
	b.must(g.Wait())
	b.noProblems(b.global.API.URL())
	t.Logf("%d large policies were acknowledged, and %d requests went from Envoy to Envoy", kept, envoys.calls.Load())
	b.must(more(envoys.calls.Load()))
}

// permissions returns their number.
func permissions(ctx context.Context, s *cluster.Server) (int, error) {
	var page struct{ Total int }
	err := s.API.Get(ctx, "/meshes/default/meshtrafficpermissions?size=1", &page)
	return page.Total, err
}
