package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestClonesOnSeveralReplicas checks that both replicas report two servers with one zone's credential, each connected
// to another replica. A zone that only moves is not reported.
func TestClonesOnSeveralReplicas(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 2, 2)
	r.agree(r.globals...)
	zone := r.zones["zone-0"]
	zone.SetArgs("--global", "grpcs://"+r.globals[0].Address("kds"))
	zone.Kill()
	r.must(zone.Start(t.Context()))
	r.agree(r.globals...)
	r.globals[0].Kill() // zone-1 is on the other replica now, or was before
	r.must(r.globals[0].Start(t.Context()))
	r.agree(r.globals...)
	for _, g := range r.globals {
		if out := r.ctl(g, "get", "zones"); strings.Contains(out, "two servers") {
			t.Fatalf("%s takes moves for clones:\n%s", g.Name(), out)
		}
	}
	_, err := r.StartClone(t.Context(), zone, "clone", "--global", "grpcs://"+r.globals[1].Address("kds"))
	r.must(err)
	for _, g := range r.globals {
		r.eventually(g.Name()+" names them", func(ctx context.Context) error {
			out, err := r.CTL(ctx, g, nil, "get", "zones")
			if err == nil && strings.Count(string(out), "two servers") != 1 {
				err = errors.New(string(out))
			}
			return err
		})
	}
}
