package bridge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

	var took []time.Duration
	set := func(verb string, want int) time.Duration {
		began := time.Now()
		_, err := users.Patch(ctx, permissions, apiserver.Name{Namespace: systemName, Name: "bench"}, "", fmt.Appendf(nil,
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
		return time.Since(began)
	}
	set("allow", http.StatusOK)
	for range 50 {
		took = append(took, set("deny", http.StatusForbidden), set("allow", http.StatusOK))
	}
	slices.Sort(took)
	goal(b, "p50-ms", milliseconds(took[len(took)/2]), 150)
	goal(b, "p99-ms", milliseconds(took[len(took)*99/100]), 500)
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
	b.ReportMetric(float64(sent)/lasted.Seconds(), "changes/s")
	goal(b, "behind-ms", milliseconds(time.Since(ended)), 1000)
	goal(b, "requests/s", float64(w.requests()-before-sent)/lasted.Seconds(), 200)
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
