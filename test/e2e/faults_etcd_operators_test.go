package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// operators run an etcd, and know nothing of its content.
type operators struct {
	*replicated
	client *clientv3.Client
	done   map[string]int
}

func newOperators(r *replicated) *operators {
	client, err := clientv3.New(clientv3.Config{Endpoints: r.etcd.Endpoints(), Logger: zap.NewNop()})
	r.must(err)
	r.t.Cleanup(func() { _ = client.Close() })
	return &operators{replicated: r, client: client, done: map[string]int{}}
}

// TestFaultsEtcdOperators moves etcd's leader, adds learners that never start and removes them, compacts etcd's whole
// history and defragments members, while globals and a zone write. Acknowledged writes are on all replicas and in the
// zone.
func TestFaultsEtcdOperators(t *testing.T) {
	t.Parallel()
	o := newOperators(newReplicated(t, 3, 2, 1))
	zone := o.zones["zone-0"]
	rng := rand.New(rand.NewPCG(*crashSeed, 0))
	writing, stop := context.WithTimeout(t.Context(), *faultTime)
	defer stop()
	ledgers := []*ledger{newLedger(o.globals[0], "g0", "meshtrafficpermissions", permissionOf, permissionValue),
		newLedger(o.globals[1], "g1", "meshtrafficpermissions", permissionOf, permissionValue),
		newLedger(zone, "z", "meshtimeouts", timeoutOf, timeoutValue)}
	var writers errgroup.Group
	for _, l := range ledgers {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		writers.Go(func() error { return l.insist(writing, own) })
	}
	for writing.Err() == nil {
		o.work(rng)
	}
	o.must(writers.Wait())
	t.Logf("done: %v; acknowledged: %d, %d and %d", o.done, ledgers[0].written, ledgers[1].written, ledgers[2].written)
	for _, kind := range []string{"leader", "history", "member", "learner"} {
		if o.done[kind] == 0 {
			t.Errorf("no %s in %s", kind, *faultTime)
		}
	}
	for _, l := range ledgers {
		if l.written == 0 {
			t.Errorf("%s wrote nothing", l.prefix)
		}
		o.must(l.check(t.Context()))
		for _, s := range []*cluster.Server{o.globals[0], o.globals[1], zone} {
			o.eventually(s.Name()+" to have what was acknowledged", func(ctx context.Context) error { return l.agrees(ctx, s) })
		}
	}
}

// work does one of an operator's tasks. Etcd may refuse it during another.
func (o *operators) work(rng *rand.Rand) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Second)
	defer cancel()
	var kind string
	var err error
	switch rng.IntN(4) {
	case 0:
		kind, err = "leader", o.movesLeader(ctx, rng)
	case 1:
		kind = "history"
		var now *clientv3.GetResponse
		if now, err = o.client.Get(ctx, "/"); err == nil {
			_, err = o.client.Compact(ctx, now.Header.Revision)
		}
	case 2:
		kind = "member"
		_, err = o.client.Defragment(ctx, o.etcd.Endpoints()[rng.IntN(3)])
	default:
		kind, err = "learner", o.learner(ctx)
	}
	if err == nil {
		o.done[kind]++
	}
	during(o.t.Context(), 100*time.Millisecond)
}

func (o *operators) movesLeader(ctx context.Context, rng *rand.Rand) error {
	members, err := o.client.MemberList(ctx)
	if err != nil {
		return err
	}
	leader := o.etcd.Leader(o.t)
	at, err := clientv3.New(clientv3.Config{Endpoints: []string{leader.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer at.Close()
	_, err = at.MoveLeader(ctx, members.Members[rng.IntN(len(members.Members))].ID)
	return err
}

// learner adds a member that never starts, and removes it.
func (o *operators) learner(ctx context.Context) error {
	added, err := o.client.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:1"})
	if err != nil {
		return err
	}
	during(o.t.Context(), 200*time.Millisecond)
	_, err = o.client.MemberRemove(ctx, added.Member.ID)
	return err
}

// TestFaultsEtcdWithoutRoom fills etcd with foreign keys, up to its quota. The global refuses writes and says why, a
// zone's writes wait, and nothing unstored is acknowledged. With room again, everything continues by itself.
func TestFaultsEtcdWithoutRoom(t *testing.T) {
	t.Parallel()
	r := &replicated{etcd: etcdtest.StartQuota(t, 16<<20)}
	r.mesh = newCluster(t)
	var err error
	r.global, err = r.StartGlobal(t.Context(), cluster.GlobalConfig{
		Args: []string{"--store", "etcd", "--etcd-endpoints", r.etcd.Members[0].Endpoint}})
	r.must(err)
	zone := r.startZone("zone-1")
	r.apply(r.global, timeout("early", "10s"))
	r.arrives(zone, "early")
	o := newOperators(r)
	o.fillsUp()
	if out, err := r.CTL(t.Context(), r.global, strings.NewReader(timeout("refused", "10s")), "apply", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), "space") {
		t.Errorf("a write without room: %v\n%s", err, out)
	}
	r.apply(zone, timeout("of-the-zone", "10s"))
	r.eventually("the global not to be ready", func(ctx context.Context) error {
		if _, err := r.global.Diagnostics(ctx, "/readyz"); err == nil || !strings.Contains(err.Error(), "503") {
			return fmt.Errorf("/readyz: %w", err)
		}
		return nil
	})
	items, err := byDisplayName(t.Context(), r.global, "/meshes/default/meshtimeouts")
	r.must(err)
	if _, there := items["of-the-zone"]; there || len(items) != 1 {
		t.Errorf("without room, the global has %d: %v", len(items), items)
	}
	o.makesRoom()
	r.arrives(r.global, "of-the-zone")
	r.apply(r.global, timeout("late", "10s"))
	r.arrives(zone, "late")
	if items, err = byDisplayName(t.Context(), r.global, "/meshes/default/meshtimeouts"); err != nil || len(items) != 3 {
		t.Errorf("afterwards the global has %v (%v)", items, err)
	}
}

// fillsUp writes until etcd has no more room.
func (o *operators) fillsUp() {
	o.t.Helper()
	for i := range 200 {
		_, err := o.client.Put(o.t.Context(), fmt.Sprint("/elsewhere/", i), strings.Repeat("x", 1<<20))
		if err != nil {
			if !strings.Contains(err.Error(), "space") {
				o.t.Fatal(err)
			}
			return
		}
	}
	o.t.Fatal("etcd is not full")
}

// makesRoom does what etcd's manual says.
func (o *operators) makesRoom() {
	o.t.Helper()
	ctx := o.t.Context()
	gone, err := o.client.Delete(ctx, "/elsewhere/", clientv3.WithPrefix())
	o.must(err)
	_, err = o.client.Compact(ctx, gone.Header.Revision)
	o.must(err)
	_, err = o.client.Defragment(ctx, o.etcd.Endpoints()[0])
	o.must(err)
	alarms, err := o.client.AlarmList(ctx)
	o.must(err)
	for _, a := range alarms.Alarms {
		_, err = o.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a))
		o.must(err)
	}
}
