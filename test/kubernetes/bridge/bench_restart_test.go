package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// The mesh of BenchmarkKubernetesRestart, and how long it is watched while nothing happens.
const (
	manyPolicies = 5000
	manyServices = 2000
	idleTime     = 30 * time.Second
)

// BenchmarkKubernetesRestart restarts a zone in a cluster with 5,000 policies and 2,000 Services. While the zone is away, one
// policy changes and another is deleted. It measures how long the zone needs until it is ready and its store says what the
// objects say, its memory then, and the CPU that it uses while nothing happens.
func BenchmarkKubernetesRestart(b *testing.B) {
	w := newWorld(b)
	z := w.zone(injection...)
	w.apply(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"kuma.io/sidecar-injection": "enabled"}}}`)
	users, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(admin), RequestsPerSecond: 2000})
	must(b, err)
	services := apiserver.Kind{Version: "v1", Plural: "services", Name: "Service", Namespaced: true}
	group := errgroup.Group{}
	group.SetLimit(16)
	for i := range manyServices {
		group.Go(func() error {
			_, err := users.Create(b.Context(), services, "shop", fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s%04d"},
 "spec": {"clusterIP": "None", "selector": {"app": "s%[1]d"}, "ports": [{"name": "http", "port": 80, "appProtocol": "http"}]}}`, i))
			return err
		})
	}
	for i := range manyPolicies {
		group.Go(func() error { return create(b.Context(), users, i) })
	}
	must(b, group.Wait())
	z.hasInAll(manyPolicies, manyServices)
	w.told(manyPolicies)

	must(b, z.Stop(b.Context()))
	_, err = users.Patch(b.Context(), permissions, apiserver.Name{Namespace: "backend-ns", Name: "p000"}, "", fmt.Appendf(nil, "{%s}", specOf(manyPolicies)))
	must(b, err)
	w.kubectl("delete", "mtp", "-n", "backend-ns", "p001")
	began := time.Now()
	z.start()
	z.hasInAll(manyPolicies-1, manyServices)
	w.eventually("the change to be stored", func(ctx context.Context) error {
		_, text, err := z.call(ctx, http.MethodGet, "/meshes/default/meshtrafficpermissions/p000?namespace=backend-ns", "")
		if err == nil && !strings.Contains(text, fmt.Sprintf(`"spiffe://a/%d"`, manyPolicies)) {
			err = fmt.Errorf("it says %.300s", text)
		}
		return err
	})
	goal(b, "5,000 policies and 2,000 Services: from the zone's start until it is ready and has what changed while it was away", "s",
		time.Since(began).Seconds(), 10)
	w.told(manyPolicies - 1)

	before, err := cluster.UsageOf(z.PID())
	must(b, err)
	time.Sleep(idleTime) // nothing is waited for: it is what is measured
	after, err := cluster.UsageOf(z.PID())
	must(b, err)
	goal(b, "its memory then", "MiB", float64(max(before.Resident, after.Resident))/(1<<20), 300)
	goal(b, "what it computes while nothing happens", "cores", (after.CPU-before.CPU).Seconds()/idleTime.Seconds(), 0.01)
}

// hasInAll waits until the zone's store has so many permissions, and so many services.
func (z *zone) hasInAll(permissions, services int) {
	z.w.t.Helper()
	for path, total := range map[string]int{"meshtrafficpermissions": permissions, "meshservices": services} {
		z.w.eventually(fmt.Sprintf("the store to have %d %s", total, path), func(ctx context.Context) error {
			_, text, err := z.call(ctx, http.MethodGet, "/meshes/default/"+path+"?size=1", "")
			var list struct{ Total int }
			if err == nil {
				err = json.Unmarshal([]byte(text), &list)
			}
			if err == nil && list.Total != total {
				err = fmt.Errorf("it has %d", list.Total)
			}
			return err
		})
	}
}

// told waits until so many permissions say in their conditions whether the zone has accepted them.
func (w *world) told(total int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d permissions to say what the zone makes of them", total), func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", "backend-ns", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Accepted")].observedGeneration}={.metadata.generation} {end}`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		n := 0
		for _, one := range strings.Fields(out) {
			if observed, generation, _ := strings.Cut(one, "="); observed == generation {
				n++
			}
		}
		if n != total {
			err = fmt.Errorf("%d do", n)
		}
		return err
	})
}
