package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// replicated is a mesh with several globals on one etcd.
type replicated struct {
	*mesh
	etcd    *etcdtest.Cluster
	globals []*cluster.Server
}

// newReplicated starts etcd, the globals, with more flags, and the zones, which join with the first global's join
// strings.
func newReplicated(t *testing.T, members, globals, zones int, more ...string) *replicated {
	t.Helper()
	r := &replicated{etcd: etcdtest.Start(t, members)} // first, so that it outlives the servers
	r.mesh = newCluster(t)
	args := append([]string{"--store", "etcd", "--etcd-endpoints", strings.Join(r.etcd.Endpoints(), ",")}, more...)
	for i := range globals {
		g, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i), Args: args})
		r.must(err)
		r.globals = append(r.globals, g)
		if i == 0 {
			args = append(args, "--secrets-key-file", filepath.Join(g.DataDir, "secrets.key"))
		}
	}
	r.global = r.globals[0]
	r.eventually("join strings with all replicas", func(ctx context.Context) error {
		var offer struct{ Addresses []string }
		if err := r.global.API.Do(ctx, http.MethodPost, "/zones/zone-0/_join", map[string]bool{"rejoin": true},
			&offer); err != nil {
			return err
		}
		if len(offer.Addresses) != globals {
			return fmt.Errorf("addresses %q", offer.Addresses)
		}
		return nil
	})
	for i := range zones {
		r.startZone(fmt.Sprintf("zone-%d", i))
	}
	return r
}

// instance returns a server's name for its current run.
func (r *replicated) instance(s *cluster.Server) string {
	r.t.Helper()
	var index struct{ InstanceID string }
	r.must(s.API.Get(r.t.Context(), "/", &index))
	return index.InstanceID
}

// sessions returns, by zone, the replicas with which the zone has sessions, according to a server. Offline zones have
// none.
func sessions(ctx context.Context, s *cluster.Server) (map[string][]string, error) {
	var page struct {
		Items []struct {
			Name        string
			ZoneInsight struct {
				Subscriptions []struct {
					GlobalInstanceID string
					DisconnectTime   *time.Time
				}
			}
		}
	}
	if err := s.API.Get(ctx, "/zones/_overview", &page); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, zone := range page.Items {
		out[zone.Name] = nil
		for _, one := range zone.ZoneInsight.Subscriptions {
			if one.DisconnectTime == nil {
				out[zone.Name] = append(out[zone.Name], one.GlobalInstanceID)
			}
		}
	}
	return out, nil
}

// seen returns the replica of each zone, according to a server; "" for offline zones.
func seen(ctx context.Context, s *cluster.Server) (map[string]string, error) {
	all, err := sessions(ctx, s)
	out := map[string]string{}
	for zone, with := range all {
		out[zone] = ""
		if len(with) > 0 {
			out[zone] = with[len(with)-1]
		}
	}
	return out, err
}

// agree waits until all globals report the same about every zone, and each zone is connected to one of them.
func (r *replicated) agree(globals ...*cluster.Server) map[string]string {
	r.t.Helper()
	alive := map[string]bool{}
	for _, g := range globals {
		alive[r.instance(g)] = true
	}
	var first map[string]string
	r.eventually("all replicas say the same of all zones", func(ctx context.Context) error {
		for i, g := range globals {
			said, err := seen(ctx, g)
			if err != nil {
				return err
			}
			for name := range r.zones {
				if !alive[said[name]] {
					return fmt.Errorf("%s says that %s is with %q, those alive are %v", g.Name(), name, said[name], alive)
				}
			}
			if i == 0 {
				first = said
			} else if !reflect.DeepEqual(first, said) {
				return fmt.Errorf("%s says %v, %s says %v", globals[0].Name(), first, g.Name(), said)
			}
		}
		return nil
	})
	return first
}

var receivedResources = regexp.MustCompile(
	`(?m)^causeway_kds_resources_total\{direction="toZone",event="received",type="[A-Za-z]+"\} (\S+)$`)

// received returns the number of resources ever sent to a zone.
func (r *replicated) received(zone *cluster.Server) int {
	r.t.Helper()
	raw, err := zone.Diagnostics(r.t.Context(), "/metrics")
	r.must(err)
	sum := 0.0
	for _, m := range receivedResources.FindAllStringSubmatch(string(raw), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		r.must(err)
		sum += n
	}
	return int(sum)
}

func timeout(name, value string) string {
	return fmt.Sprintf("type: MeshTimeout\nmesh: default\nname: %s\nspec: {targetRef: {kind: Mesh}, to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: %s}}]}\n", name, value)
}

// everywhere waits until all zones have the given number of timeouts.
func (r *replicated) everywhere(n int) {
	r.t.Helper()
	for _, zone := range r.zones {
		r.eventually(fmt.Sprintf("%d policies in %s", n, zone.Name()), func(ctx context.Context) error {
			got, err := timeouts(ctx, zone)
			if err == nil && len(got) != n {
				err = fmt.Errorf("it has %d", len(got))
			}
			return err
		})
	}
}

// TestReplicas checks that two globals on one etcd report the same about every zone. When one is killed, its zones move
// to the other, and receive only what changed.
func TestReplicas(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 2, 6)
	const policies = 30
	for i := range policies {
		r.apply(r.globals[i%2], timeout(fmt.Sprintf("t%d", i), "10s"))
	}
	r.everywhere(policies)
	with := r.agree(r.globals...)
	for i, g := range r.globals {
		status, err := r.CTL(t.Context(), g, nil, "rollout", "status", "mt", "t0", "--wait", "--timeout", "30s")
		if !strings.Contains(string(status), "acknowledged by 6 of 6 zones") || exitStatus(err) != 1 {
			t.Errorf("global %d: %s, %v; want all zones, and no proxy that enforces it", i, status, err)
		}
		if table := r.ctl(g, "get", "zones", "-o", "wide"); !strings.Contains(table, "REPLICA") ||
			!strings.Contains(table, with["zone-0"]) {
			t.Errorf("global %d:\n%s", i, table)
		}
	}

	victim, survivor := r.globals[0], r.globals[1]
	if n := count(with, r.instance(survivor)); n > len(r.zones)/2 {
		victim, survivor = survivor, victim
	}
	moving := count(with, r.instance(victim))
	before := map[string]int{}
	for name, zone := range r.zones {
		before[name] = r.received(zone)
	}
	victim.Kill()
	r.apply(survivor, timeout("late", "11s"))
	r.everywhere(policies + 1)
	r.agree(survivor)
	for name, zone := range r.zones {
		if got := r.received(zone) - before[name]; got != 1 {
			t.Errorf("%s was sent %d resources, want the one that changed (%d zones moved)", name, got, moving)
		}
	}

	// It returns as a new replica without zones. A zone that is resynced through either replica moves to its next
	// address.
	r.must(victim.Start(t.Context()))
	if n := count(r.agree(survivor, victim), r.instance(victim)); n != 0 {
		t.Errorf("%d zones went to a replica that came back", n)
	}
	r.ctl(victim, "zone", "resync", "zone-0")
	r.eventually("zone-0 is with the replica that came back", func(ctx context.Context) error {
		with, err := seen(ctx, victim)
		if err == nil && with["zone-0"] != r.instance(victim) {
			err = fmt.Errorf("it is with %q", with["zone-0"])
		}
		return err
	})
	r.agree(survivor, victim)
	r.everywhere(policies + 1)
}

func count(with map[string]string, instance string) int {
	n := 0
	for _, one := range with {
		if one == instance {
			n++
		}
	}
	return n
}

func (r *replicated) ctl(s *cluster.Server, args ...string) string {
	r.t.Helper()
	out, err := r.CTL(r.t.Context(), s, nil, args...)
	r.must(err)
	return string(out)
}

// TestReplicasWithoutEtcd checks that without etcd, zones keep their sessions and resources, reads continue, writes are
// refused with a time to retry, and zones' updates wait. Everything recovers by itself.
func TestReplicasWithoutEtcd(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 2, 2)
	r.apply(r.global, timeout("before", "10s"))
	r.everywhere(1)
	with := r.agree(r.globals...)
	r.etcd.Members[0].Kill()
	for _, g := range r.globals {
		r.eventually(g.Name()+" is not ready", func(ctx context.Context) error {
			if _, err := g.Diagnostics(ctx, "/readyz"); err == nil {
				return errors.New("it is")
			}
			return nil
		})
		_, err := r.CTL(t.Context(), g, strings.NewReader(timeout("during", "10s")), "apply", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "cannot write") {
			t.Errorf("a write is answered with %v", err)
		}
		if got, err := timeouts(t.Context(), g); err != nil || len(got) != 1 {
			t.Errorf("%s reads %d, %v", g.Name(), len(got), err)
		}
	}
	zone := r.zones["zone-0"]
	r.apply(zone, "type: MeshTimeout\nmesh: default\nname: own\nlabels: {kuma.io/origin: zone}\nspec: {targetRef: {kind: Dataplane}, rules: [{default: {connectionTimeout: 3s}}]}\n")
	r.etcd.Members[0].Start(t)
	for _, g := range r.globals {
		r.eventually("the zone's policy on "+g.Name(), func(ctx context.Context) error {
			got, err := timeouts(ctx, g)
			if err == nil && len(got) != 2 {
				err = fmt.Errorf("it has %d", len(got))
			}
			return err
		})
		r.eventually(g.Name()+" is ready", func(ctx context.Context) error {
			_, err := g.Diagnostics(ctx, "/readyz")
			return err
		})
	}
	if now := r.agree(r.globals...); !reflect.DeepEqual(now, with) {
		t.Errorf("zones moved: %v, then %v", with, now)
	}
	for name, zone := range r.zones {
		if n := strings.Count(zone.Log(), "connected to the global"); n != 1 {
			t.Errorf("%s had %d sessions", name, n)
		}
	}
}
