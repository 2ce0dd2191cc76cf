package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// replicasLoad is the load on globals that share an etcd.
type replicasLoad struct {
	globals, zones, policies, writes int
	// joined means that the zones have joined, and prove who they are by certificates.
	joined bool
	// kills is how many of the globals are killed, within is how long all zones may take then, in seconds.
	kills  int
	within float64
}

// measureReplicas measures three globals with a few hundred zones.
func (b *bench) measureReplicas(ctx context.Context) (*table, error) {
	load := replicasLoad{globals: 3, zones: 300, policies: 2000, writes: 60, kills: 3, within: 3}
	t := &table{title: fmt.Sprintf("Replicas: %d globals on one etcd, %d zones, %d policies", load.globals, load.zones, load.policies)}
	return t, b.moveBetween(ctx, t, load)
}

// measureFailover measures two globals, of which one is killed with all of its zones, which then prove who they are to the
// other.
func (b *bench) measureFailover(ctx context.Context, zones int) (*table, error) {
	load := replicasLoad{globals: 2, zones: zones, policies: 1000, writes: 20, joined: true, kills: 2, within: 10}
	t := &table{title: fmt.Sprintf("Failover: %d globals on one etcd, %d zones by mutual TLS, %d policies", load.globals, load.zones, load.policies)}
	return t, b.moveBetween(ctx, t, load)
}

// moveBetween runs globals on one etcd with zones that move between them. It measures how long a write takes to all
// zones. It kills replicas in turn, and measures how long it takes until all zones are in sync again and how much
// they receive.
func (b *bench) moveBetween(ctx context.Context, t *table, load replicasLoad) error {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	b.started++
	dir := filepath.Join(b.dir, fmt.Sprint(b.started))
	member, endpoint, err := etcdtest.Alone(filepath.Join(dir, "etcd"))
	if err != nil {
		return err
	}
	if err := member.Start(); err != nil {
		return err
	}
	defer func() {
		_ = member.Process.Kill()
		_ = member.Wait()
	}()
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: dir})
	if err != nil {
		return err
	}
	defer c.Close()
	globals, err := startReplicas(ctx, c, endpoint, load)
	if err != nil {
		return err
	}
	if err := fill(ctx, globals[0], load.policies,
		func(i int) (string, map[string]any) { return permission(i, noMark, nil) }); err != nil {
		return err
	}
	var proofs []credentials.TransportCredentials
	if load.joined {
		if proofs, err = join(ctx, c, globals[0], dir, load.zones); err != nil {
			return err
		}
		b.say("%d zones have joined", load.zones)
	}
	var addresses []string
	for _, g := range globals {
		addresses = append(addresses, g.Address("kds"))
	}
	m := newMarks()
	start := time.Now()
	z := moveZones(ctx, addresses, load.zones, m, proofs)
	defer z.close()
	if err := z.await(patience, func(i int) bool { return z.synced[i].Load() >= int64(load.policies) }); err != nil {
		return err
	}
	t.add("initial sync of all zones", "s", 0, time.Since(start).Seconds())
	b.say("%d zones in sync", load.zones)
	if err := z.propagation(t, globals, load.writes); err != nil {
		return err
	}
	if load.joined {
		if err := addFloorOfComing(ctx, t, load.zones, int(z.said.Load())); err != nil {
			return err
		}
	}
	for i := range load.kills {
		b.say("killing %d of %d", i+1, len(globals))
		if err := z.failover(t, globals, i, load); err != nil {
			return err
		}
	}
	return nil
}

// addFloorOfComing measures how long zones take that all come at once to a server that does nothing. Up to all of them move.
func addFloorOfComing(ctx context.Context, t *table, zones, said int) error {
	for range comings {
		took, err := floorOfComing(ctx, zones, said)
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("the floor: %d bare gRPC streams by mutual TLS, that say as much as a zone", zones), "s", 0, took.Seconds())
	}
	return nil
}

// comings is how often the floor is measured.
const comings = 3

func startReplicas(ctx context.Context, c *cluster.Cluster, endpoint string, load replicasLoad) ([]*cluster.Server, error) {
	var globals []*cluster.Server
	args := []string{"--log-level", "warn", "--store", "etcd", "--etcd-endpoints", endpoint}
	if !load.joined {
		args = append(args, "--kds-tls=false")
	}
	for i := range load.globals {
		g, err := c.StartGlobal(ctx, cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i), Anonymous: !load.joined, Args: args})
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
func (z *movingZones) propagation(t *table, globals []*cluster.Server, writes int) error {
	var last []time.Duration
	for i := range writes {
		n := z.marks.next(z.size)
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
func (z *movingZones) failover(t *table, globals []*cluster.Server, i int, load replicasLoad) error {
	victim, survivor := globals[i], globals[(i+1)%len(globals)]
	moved, sent := z.sessions.Load(), z.received.Load()
	collect()
	start := time.Now()
	victim.Kill()
	n := z.marks.next(z.size)
	path, doc := permission(load.writes+i, n, nil)
	if err := survivor.API.Put(z.ctx, path, doc); err != nil {
		return err
	}
	if err := z.marks.wait(z.ctx, n); err != nil {
		return err
	}
	if err := z.await(patience, func(i int) bool { return z.settled[i].Load() }); err != nil {
		return err
	}
	t.add("a replica is killed, until all zones are in sync again", "s", load.within, time.Since(start).Seconds())
	t.add("zones that moved", "zones", 0, float64(z.sessions.Load()-moved))
	t.add("resources sent for it, for each zone: one changed", "resources", 1,
		float64(z.received.Load()-sent)/float64(z.size))
	return victim.Start(z.ctx)
}
