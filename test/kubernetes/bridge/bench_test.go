package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// BenchmarkKubernetesEnforced measures the time from a user's write at the API server of the global until a real Envoy of
// another zone answers by it.
func BenchmarkKubernetesEnforced(b *testing.B) {
	w := newWorld(b)
	ctx := b.Context()
	g, err := w.StartGlobal(ctx, cluster.GlobalConfig{Args: w.fed()})
	must(b, err)
	z, err := w.StartZone(ctx, cluster.ZoneConfig{Name: "zone-2", Global: g})
	must(b, err)
	backend, err := w.StartWorkload(ctx, cluster.WorkloadConfig{Zone: z, Mesh: "default", Namespace: "backend-ns", Name: "backend",
		ServiceAccount: "backend", Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}}})
	must(b, err)
	b.Cleanup(backend.Close)
	id, err := cluster.RegisterClient(ctx, cluster.WorkloadConfig{Zone: z, Mesh: "default", Namespace: "default", Name: "caller", ServiceAccount: "caller"}, "zone-2")
	must(b, err)
	caller := cluster.NewClient(id, false)
	b.Cleanup(caller.Close)
	users, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice)})
	must(b, err)
	w.apply(permission("bench", systemName, "Exact"))

	seen := &arrivals{at: map[string]time.Time{}}
	go users.FollowIn(ctx, permissions, systemName, "", seen) // until the benchmark ends

	var took, ours []time.Duration
	set := func(verb string, want int) time.Duration {
		began := time.Now()
		written, err := users.Patch(ctx, permissions, apiserver.Name{Namespace: systemName, Name: "bench"}, "", fmt.Appendf(nil,
			`{"spec": {"rules": [{"default": {"allow": null, "deny": null, %q: [{"spiffeId": {"type": "Exact", "value": %q}}]}}]}}`, verb, id.SpiffeID))
		must(b, err)
		w.eventually(fmt.Sprintf("Envoy to answer %d", want), func(ctx context.Context) error {
			for {
				status, _, err := caller.Get(ctx, backend.Inbound("http").Port, "/")
				if err != nil || ctx.Err() != nil {
					return err
				}
				if status == want {
					return nil
				}
			}
		})
		ended := time.Now()
		ours = append(ours, ended.Sub(seen.of(w, written)))
		return ended.Sub(began)
	}
	set("allow", http.StatusOK)
	ours = nil
	for range 50 {
		took = append(took, set("deny", http.StatusForbidden), set("allow", http.StatusOK))
	}
	slices.Sort(took)
	slices.Sort(ours)
	const title = "a write in the API server of the global until a real Envoy of another zone answers by it"
	goal(b, title+", p50", "ms", milliseconds(took[len(took)/2]), 150)
	goal(b, title+", p99", "ms", milliseconds(took[len(took)*99/100]), 500)
	goal(b, "of that from the event of a watch of the API server, p99", "ms", milliseconds(ours[len(ours)*99/100]), 50)
}

// arrivals are the times at which versions of objects came from the API server.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time // guarded by mu
}

// Changed notes when a version came.
func (a *arrivals) Changed(o *apiserver.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[o.Meta.ResourceVersion] = time.Now()
}

// Replace notes what is there already.
func (a *arrivals) Replace(all []*apiserver.Object) {
	for _, o := range all {
		a.Changed(o)
	}
}

// Deleted does nothing.
func (a *arrivals) Deleted(*apiserver.Object) {}

// Failed does nothing: the version does not come then.
func (a *arrivals) Failed(error) {}

// Resumed does nothing.
func (a *arrivals) Resumed() {}

// of waits until a version has come, and returns when.
func (a *arrivals) of(w *world, o *apiserver.Object) (at time.Time) {
	w.t.Helper()
	w.eventually("the event of version "+o.Meta.ResourceVersion, func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		var come bool
		if at, come = a.at[o.Meta.ResourceVersion]; !come {
			return errors.New("it has not come")
		}
		return nil
	})
	return at
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// The load of BenchmarkKubernetesChanges.
const (
	changeRate = 100 // a second
	changeTime = time.Minute
	changed    = 200 // policies
)

// BenchmarkKubernetesChanges changes policies 100 times a second for a minute. It measures how long the zone needs after the
// last change until its store says what the objects say, and the requests that the API server served for it.
func BenchmarkKubernetesChanges(b *testing.B) {
	w := newWorld(b)
	z := w.zone()
	users, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice), RequestsPerSecond: changeRate})
	must(b, err)
	for i := range changed {
		must(b, create(b.Context(), users, i))
	}
	w.agree(z)
	before, began := w.requests(), time.Now()
	sent := 0
	group := errgroup.Group{}
	group.SetLimit(8)
	for time.Since(began) < changeTime && sent < changeRate*int(changeTime/time.Second) {
		i := sent
		sent++
		group.Go(func() error {
			_, err := users.Patch(b.Context(), permissions, apiserver.Name{Namespace: "backend-ns", Name: fmt.Sprintf("p%03d", i%changed)}, "",
				fmt.Appendf(nil, "{%s}", specOf(i)))
			return err
		})
	}
	must(b, group.Wait())
	lasted, ended := time.Since(began), time.Now()
	w.agree(z)
	if rate := float64(sent) / lasted.Seconds(); rate < changeRate*0.95 {
		b.Errorf("there were only %.3g changes a second", rate)
	}
	goal(b, "100 changes a second for a minute: from the last one until the zone's store has it", "s", time.Since(ended).Seconds(), 1)
	goal(b, "requests that the API server then serves the zone", "a second", float64(w.requests()-before-sent)/lasted.Seconds(), 200)
}

func specOf(value int) string {
	return fmt.Sprintf(`"spec": {"rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/%d"}}]}}]}`, value)
}

func create(ctx context.Context, users *apiserver.Client, i int) error {
	_, err := users.Create(ctx, permissions, "backend-ns", fmt.Appendf(nil,
		`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": "p%03d"}, %s}`, i, specOf(i)))
	return err
}

// requests counts the requests for objects of the mesh that the API server has served.
func (w *world) requests() int {
	w.t.Helper()
	n := 0
	for line := range strings.Lines(w.kubectl("get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `group="kuma.io"`) {
			continue
		}
		fields := strings.Fields(line)
		one, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		must(w.t, err)
		n += int(one)
	}
	return n
}
