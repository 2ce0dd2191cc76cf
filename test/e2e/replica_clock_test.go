package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestReplicaWithAnotherClock runs two replicas, one of which is ten minutes ahead or behind. Tokens of each are refused
// at the other with what its clock says, or taken, and never for longer than they last; what one revokes is refused by
// both; and a zone that is revoked at either leaves both for good, whichever it was connected to.
func TestReplicaWithAnotherClock(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := cluster.BuildWithClocks(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	for name, off := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) { replicaWithAnotherClock(t, bin, off) })
	}
}

func replicaWithAnotherClock(t *testing.T, bin string, off time.Duration) {
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newClusterOf(t, bin)
	endpoints := []string{"--store", "etcd", "--etcd-endpoints", r.etcd.Members[0].Endpoint}
	clock, err := cluster.NewClock(filepath.Join(t.TempDir(), "clock"))
	r.must(err)
	t.Cleanup(func() { _ = clock.Close() })
	r.must(clock.Set(off))
	right, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "right", Args: endpoints})
	r.must(err)
	wrong, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "wrong", Clock: clock,
		Args: append(endpoints[:len(endpoints):len(endpoints)], "--secrets-key-file", right.DataDir+"/secrets.key")})
	r.must(err)
	r.global = right
	tokenOf := func(s *cluster.Server, validFor string) string {
		out, err := r.CTL(t.Context(), s, nil, "user", "token", "--name", "alice", "--group", "mesh-system:admin", "--valid-for", validFor)
		r.must(err)
		return strings.TrimSpace(string(out))
	}
	answer := func(s *cluster.Server, token, want string) {
		t.Helper()
		r.eventually(fmt.Sprintf("%s to answer %q", s.Name(), want), func(ctx context.Context) error {
			out, err := r.CTL(ctx, s, nil, "--token", token, "auth", "whoami")
			if said := fmt.Sprint(string(out), err); !strings.Contains(said, want) {
				return fmt.Errorf("it answers %s", said)
			}
			return nil
		})
	}
	ahead, behind := wrong, right
	if off < 0 {
		ahead, behind = right, wrong
	}
	early, brief := tokenOf(ahead, "1h"), tokenOf(behind, "5m")
	answer(ahead, early, "alice")
	answer(behind, early, "is not valid yet, by this server's clock")
	answer(behind, brief, "alice")
	answer(ahead, brief, "has expired, by this server's clock")
	for _, at := range []*cluster.Server{ahead, behind} {
		token := tokenOf(behind, "1h")
		answer(ahead, token, "alice")
		answer(behind, token, "alice")
		_, err := r.CTL(t.Context(), at, nil, "user", "revoke", idOf(t, token))
		r.must(err)
		answer(ahead, token, "is not valid here")
		answer(behind, token, "is not valid here")
	}
	for i, at := range []*cluster.Server{ahead, behind} {
		zone := fmt.Sprintf("zone-%d", i)
		// A join string of the other would be refused here for 10 minutes, with what the clock says.
		z, err := r.StartZone(t.Context(), cluster.ZoneConfig{Name: zone, Global: behind})
		r.must(err)
		r.must(z.WaitMesh(t.Context(), "default"))
		online := func(want bool) {
			t.Helper()
			r.eventually(fmt.Sprintf("%s online: %v", zone, want), func(ctx context.Context) error {
				for _, s := range []*cluster.Server{ahead, behind} {
					out, err := r.CTL(ctx, s, nil, "get", "zones", zone)
					if err == nil && strings.Contains(string(out), "online") != want {
						err = fmt.Errorf("%s says %s", s.Name(), out)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		online(true)
		r.must(at.API.Do(t.Context(), http.MethodPost, "/zones/"+zone+"/_revoke", map[string]any{}, nil))
		online(false)
		r.must(z.Stop(t.Context()))
		r.must(z.Start(t.Context()))
		r.eventually(zone+" to be refused again", func(context.Context) error {
			if !strings.Contains(z.Log(), "certificate was revoked") {
				return fmt.Errorf("its log:\n%s", z.Tail(5))
			}
			return nil
		})
		online(false)
	}
}
