package global

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
)

const (
	// listenInterval is the interval at which a replica checks that it can hear the others.
	listenInterval = time.Second
	// doubtAfter is how long a replica hears nothing before it calls unknown what it was told: as long as the others take
	// it for present.
	doubtAfter = etcd.DefaultReplicaLease
)

// followState follows the shared state while etcd answers, until ctx ends. When etcd has not answered for a while, what
// the others told is unknown until all shared state is heard again.
func (r *replicas) followState(ctx context.Context) error {
	for ctx.Err() == nil {
		following, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.shared.Follow(following, r.apply)
		}()
		lost := r.listens(ctx)
		stop()
		<-done
		if ctx.Err() != nil {
			return nil
		}
		r.log.Warn("etcd does not answer: the status of zones of other replicas is unknown", "since", lost)
		r.sync.Doubt(lost)
		for r.durable.Answers() != nil && ctx.Err() == nil {
			pause(ctx, listenInterval)
		}
		r.setLost(time.Time{})
	}
	return nil
}

// listens returns once etcd has not answered for a while, with since when, or ctx has ended.
func (r *replicas) listens(ctx context.Context) (since time.Time) {
	for ctx.Err() == nil {
		switch err := r.durable.Answers(); {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = r.now().UTC()
		case r.now().Sub(since) >= doubtAfter:
			return since
		}
		r.setLost(since)
		pause(ctx, listenInterval)
	}
	return since
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *replicas) setLost(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = since
}

// cutOff returns since when etcd does not answer, so that other replicas may have written; zero while it does.
func (r *replicas) cutOff() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// why returns the reason why what this replica shows may be old; empty if it may not.
func (r *replicas) why() string {
	if err := r.durable.Answers(); err != nil {
		return err.Error()
	}
	return ""
}

// apply applies the zone status of the other replicas. Status of a zone that this replica has is outdated, or from
// before it had the zone: it sends its own again.
func (r *replicas) apply(change etcd.StateChange) {
	r.setPresent(change.Replicas)
	b := store.Batch{}
	named := map[resources.Key]bool{}
	for _, n := range change.Notes {
		rest, ok := strings.CutPrefix(n.Key, zonesPrefix)
		if !ok {
			continue
		}
		zone, rest, _ := strings.Cut(rest, "/")
		if "/"+rest == stateSuffix {
			r.applyState(zone, n.Value)
			continue
		}
		if key, err := store.DecodeKey([]byte(strings.TrimPrefix("/"+rest, resourcesInfix))); err == nil {
			named[key] = true
			r.applyResource(&b, zone, key, n.Value)
		}
	}
	if change.Whole {
		r.dropUnnamed(&b, named)
	}
	if len(b.Ops) > 0 {
		if _, err := r.status.Apply(context.Background(), b); err != nil { // in memory: it does not block
			r.log.Error("cannot store another replica's status of its zones", "error", err)
		}
	}
	poke(r.wake)
}

// setPresent records which replicas are present.
func (r *replicas) setPresent(listed []etcd.Replica) {
	var present []replica
	for _, m := range listed {
		one := replica{}
		if err := json.Unmarshal(m.Value, &one); err != nil {
			r.log.Error("cannot decode another replica's entry", "replica", m.ID, "error", err)
		}
		one.Instance = m.ID
		present = append(present, one)
	}
	r.mu.Lock()
	before := len(r.present)
	r.present = present
	r.mu.Unlock()
	if before != len(present) {
		r.log.Info("replicas of this global", "count", len(present), "leads", r.leads())
	}
}

func (r *replicas) applyState(zone string, value []byte) {
	var note zoneNote
	if value == nil {
		r.mu.Lock()
		delete(r.remote, zone)
		r.mu.Unlock()
		return
	}
	if err := json.Unmarshal(value, &note); err != nil || note.State == nil {
		r.log.Error("cannot decode another replica's status of a zone", "zone", zone, "error", err)
		return
	}
	if !r.has(zone) {
		r.sync.Adopt(zone, note.State)
	}
	// A late note, of a session that another replica has taken over since, would look like a server that came back.
	if claim := kds.ClaimOf(r.durable.Snapshot(), zone); note.State.Instance != "" && note.Replica != r.instance &&
		claim != nil && claim.Replica == note.Replica {
		r.clones.meet(zone, note.State.Instance)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remote[zone] = remoteZone{replica: note.Replica, connected: note.State.Connected}
	if r.has(zone) && note.Replica != r.instance {
		r.dirtyZones[zone] = true
	}
}

// applyResource adds the effect of a note to b.
func (r *replicas) applyResource(b *store.Batch, zone string, key resources.Key, value []byte) {
	here := r.status.Snapshot().Get(key)
	var said *resources.Resource
	if value != nil {
		var err error
		if said, err = store.DecodeEntry(store.EncodeKey(key), value); err != nil {
			r.log.Error("cannot decode another replica's status of a zone", "zone", zone, "error", err)
			return
		}
	}
	same := here == nil && said == nil || here != nil && said != nil && here.SameContent(said)
	switch {
	case same:
	case r.has(zone):
		r.mu.Lock()
		r.dirtyKeys[key], r.published[key] = true, zone
		r.mu.Unlock()
	case said == nil:
		b.Ops = append(b.Ops, store.Op{Delete: key})
	default:
		b.Ops = append(b.Ops, store.Op{Put: said})
	}
}

// dropUnnamed adds the removal of what all shared state does not contain to b.
func (r *replicas) dropUnnamed(b *store.Batch, named map[resources.Key]bool) {
	snapshot := r.status.Snapshot()
	for _, t := range []resources.Type{resources.TypeZoneInsight, resources.TypeDataplaneInsight} {
		for one := range snapshot.List(store.Query{Type: t}) {
			if zone := zoneOf(one); zone != "" && !named[one.Key] && !r.has(zone) {
				b.Ops = append(b.Ops, store.Op{Delete: one.Key})
			}
		}
	}
}
