package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// change is how long a change on the global took until each zone's Envoy enforced it.
type change struct {
	what  string
	after map[string]time.Duration // by zone
}

// operatorDenies is the operator's policy with one client denied. The demo writes it while requests run.
var operatorDenies = map[string]any{
	"type": "MeshTrafficPermission", "mesh": meshName, "name": "by-mesh-operator",
	"spec": map[string]any{"default": map[string]any{"deny": []any{
		map[string]any{"spiffeId": map[string]any{
			"type": "Prefix", "value": "spiffe://" + cluster.TrustDomain(meshName, zone1) + "/ns/observability/",
		}},
	}}},
}

const operatorPath = "/meshes/" + meshName + "/meshtrafficpermissions/by-mesh-operator"

// measureChanges lets one client call both zones without a pause, changes the operator's policy to a denial meanwhile,
// and changes it back.
func (m *mesh) measureChanges(ctx context.Context) ([]change, error) {
	allowed := applied{operatorAllows, globalServer}
	if err := m.apply(ctx, allowed); err != nil {
		return nil, err
	}
	for _, to := range []string{backend1, backend2} {
		if got, ok := m.settle(ctx, call{prometheus1, to, httpPort, allow(byOperator)}); !ok {
			return nil, fmt.Errorf("before the change, %s calling %s is %s", prometheus1, to, got)
		}
	}
	deny, err := m.measure(ctx, false,
		func() error { return m.servers[globalServer].API.Put(ctx, operatorPath, operatorDenies) })
	if err != nil {
		return nil, err
	}
	back, err := m.measure(ctx, true, func() error {
		_, err := m.CTL(ctx, m.servers[globalServer], nil, "apply", "-f", filepath.Join(m.dir, operatorAllows))
		return err
	})
	if err != nil {
		return nil, err
	}
	return []change{
		{"the operator denies " + prometheus1, deny},
		{"the operator allows it again (by causewayctl)", back},
	}, m.remove(ctx, allowed)
}

// measure returns, for each zone, the time from the start of write to the first request with the new outcome.
func (m *mesh) measure(ctx context.Context, allowed bool, write func() error) (map[string]time.Duration, error) {
	g, ctx := errgroup.WithContext(ctx)
	zones := []string{zone1, zone2}
	running := make(chan struct{}, len(zones)) // receives once per zone when its requests have begun
	seen := make([]time.Time, len(zones))
	for i, key := range []string{backend1, backend2} {
		g.Go(func() error {
			var err error
			seen[i], err = m.callUntil(ctx, key, allowed, running)
			return err
		})
	}
	for range zones {
		select {
		case <-running:
		case <-ctx.Done():
			return nil, g.Wait()
		}
	}
	start := time.Now()
	g.Go(write)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	took := map[string]time.Duration{}
	for i, zone := range zones {
		took[zone] = seen[i].Sub(start)
	}
	return took, nil
}

// callUntil calls without a pause until the outcome changes, and returns the time of that. The first answer must be the
// old one.
func (m *mesh) callUntil(ctx context.Context, key string, allowed bool, running chan<- struct{}) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	client, port := m.clients[prometheus1], m.workloads[key].Inbound(httpPort).Port
	for n := 0; ; n++ {
		status, _, err := client.Get(ctx, port, "/")
		if err != nil {
			return time.Time{}, fmt.Errorf("%s calling %s: %w", prometheus1, key, err)
		}
		changed := (status == 200) == allowed
		switch {
		case n == 0 && changed:
			return time.Time{}, fmt.Errorf("%s calling %s got %d before the change", prometheus1, key, status)
		case n == 0:
			running <- struct{}{}
		case changed:
			return time.Now(), nil
		}
	}
}
