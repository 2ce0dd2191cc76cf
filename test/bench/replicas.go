package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// The sizes for the replicas' goals.
const (
	replicaCount, replicaZones, replicaPolicies = 3, 300, 2000
	replicaWrites                               = 60
)

// measureReplicas runs globals on one etcd with zones that move between them. It measures how long a write takes to all
// zones. It kills each replica in turn, and measures how long it takes until all zones are in sync again and how much
// they receive.
func (b *bench) measureReplicas(ctx context.Context) (*table, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	b.started++
	dir := filepath.Join(b.dir, fmt.Sprint(b.started))
	member, endpoint, err := etcdtest.Alone(filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	if err := member.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = member.Process.Kill()
		_ = member.Wait()
	}()
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: dir})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	globals, err := startReplicas(ctx, c, endpoint)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, globals[0], replicaPolicies,
		func(i int) (string, map[string]any) { return permission(i, noMark, nil) }); err != nil {
		return nil, err
	}
	t := &table{title: fmt.Sprintf("Replicas: %d globals on one etcd, %d zones, %d policies", replicaCount,
		replicaZones, replicaPolicies)}
	var addresses []string
	for _, g := range globals {
		addresses = append(addresses, g.Address("kds"))
	}
	m := newMarks()
	start := time.Now()
	z := moveZones(ctx, addresses, replicaZones, m)
	defer z.close()
	if err := z.await(patience, func(i int) bool { return z.synced[i].Load() >= replicaPolicies }); err != nil {
		return nil, err
	}
	t.add("initial sync of all zones", "s", 0, time.Since(start).Seconds())
	b.say("replicas: %d zones in sync", replicaZones)
	if err := z.propagation(t, globals); err != nil {
		return nil, err
	}
	for i := range globals {
		b.say("replicas: killing %d of %d", i+1, len(globals))
		if err := z.failover(t, globals, i); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func startReplicas(ctx context.Context, c *cluster.Cluster, endpoint string) ([]*cluster.Server, error) {
	var globals []*cluster.Server
	args := []string{"--kds-tls=false", "--log-level", "warn", "--store", "etcd", "--etcd-endpoints", endpoint}
	for i := range replicaCount {
		g, err := c.StartGlobal(ctx, cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i), Anonymous: true, Args: args})
		if err != nil {
			return nil, err
		}
		globals = append(globals, g)
		if i == 0 {
			args = append(args, "--secrets-key-file", filepath.Join(g.DataDir, "secrets.key"))
		}
	}
	return globals, nil
}

// propagation writes on each replica in turn, one write at a time.
func (z *movingZones) propagation(t *table, globals []*cluster.Server) error {
	var last []time.Duration
	for i := range replicaWrites {
		n := z.marks.next(replicaZones)
		path, doc := permission(i, n, nil)
		if err := globals[i%len(globals)].API.Put(z.ctx, path, doc); err != nil {
			return err
		}
		if err := z.marks.wait(z.ctx, n); err != nil {
			return err
		}
		last = append(last, z.marks.last(n))
	}
	t.add("write on any replica to last zone of all, p50", "ms", 0, percentile(last, 50))
	t.add("write on any replica to last zone of all, p99", "ms", 0, percentile(last, 99))
	return nil
}

// failover kills one replica, writes one policy on the next, and restarts the first.
func (z *movingZones) failover(t *table, globals []*cluster.Server, i int) error {
	victim, survivor := globals[i], globals[(i+1)%len(globals)]
	moved, sent := z.sessions.Load(), z.received.Load()
	start := time.Now()
	victim.Kill()
	n := z.marks.next(replicaZones)
	path, doc := permission(replicaWrites+i, n, nil)
	if err := survivor.API.Put(z.ctx, path, doc); err != nil {
		return err
	}
	if err := z.marks.wait(z.ctx, n); err != nil {
		return err
	}
	if err := z.await(patience, func(i int) bool { return z.settled[i].Load() }); err != nil {
		return err
	}
	t.add("a replica is killed, until all zones are in sync again", "s", 3, time.Since(start).Seconds())
	t.add("zones that moved", "zones", 0, float64(z.sessions.Load()-moved))
	t.add("resources sent for it, for each zone: one changed", "resources", 1,
		float64(z.received.Load()-sent)/replicaZones)
	return victim.Start(z.ctx)
}
