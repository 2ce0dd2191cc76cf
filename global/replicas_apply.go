package global

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
)

const (
	// listenInterval is how often a replica checks that it can hear the others.
	listenInterval = time.Second
	// cutOffReason and fullReason explain why the status of other replicas' zones is unknown.
	cutOffReason = "the replica that was asked and etcd are cut off from each other"
	fullReason   = "etcd takes no writes, so the replicas cannot tell each other anything"
	// doubtAfter is how long a replica may hear nothing before the others' status becomes unknown. The others consider
	// it live for as long.
	doubtAfter = etcd.DefaultReplicaLease
)

// followState follows the shared state while etcd answers, until ctx ends. Once etcd has not answered for a while, the
// others' status is unknown until all shared state has been read again.
func (r *replicas) followState(ctx context.Context) error {
	for ctx.Err() == nil {
		following, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.shared.Follow(following, r.apply)
		}()
		lost := r.listens(ctx)
		r.waitForRoom(ctx, lost)
		stop()
		<-done
		if ctx.Err() != nil {
			return nil
		}
		if err := r.durable.Answers(); err != nil {
			r.log.Warn("etcd does not answer: the status of zones of other replicas is unknown", "since", lost, "error", err)
			r.setLost(lost, false)
			r.sync.Doubt(lost, cutOffReason, nil)
		}
		for r.durable.Answers() != nil && ctx.Err() == nil {
			pause(ctx, listenInterval)
		}
		r.setLost(time.Time{}, false)
	}
	return nil
}

// listens returns once etcd has not answered for a while or rejects writes, with the time since when, or when ctx ends.
func (r *replicas) listens(ctx context.Context) (since time.Time) {
	for ctx.Err() == nil {
		full := r.durable.Answers() != nil && r.durable.Current() == nil
		switch {
		case r.durable.Answers() == nil:
			since = time.Time{}
		case since.IsZero():
			since = r.now().UTC()
		}
		r.setLost(since, full)
		if full || !since.IsZero() && r.now().Sub(since) >= doubtAfter {
			return since
		}
		pause(ctx, listenInterval)
	}
	return since
}

// waitForRoom returns once etcd accepts writes or stops answering, or ctx ends. Until then, the other replicas cannot
// publish the status of their zones. They still renew their leases, so it follows which of them are live.
func (r *replicas) waitForRoom(ctx context.Context, since time.Time) {
	for first := true; ctx.Err() == nil && r.durable.Current() == nil; first = false {
		full := r.durable.Answers()
		if full == nil {
			return
		}
		if first {
			r.log.Warn("etcd takes no writes: the status of zones of other replicas is unknown", "since", since, "error", full)
		}
		r.sync.Doubt(since, fullReason, r.hadLast) // again, because what arrived meanwhile is older
		pause(ctx, listenInterval)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hadLast reports whether a zone's last session was here. Another replica can only take it over by a write, which this
// one would see.
func (r *replicas) hadLast(zone string) bool {
	claim := kds.ClaimOf(r.durable.Snapshot(), zone)
	return claim != nil && claim.Replica == r.instance
}

func (r *replicas) setLost(since time.Time, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.full = since, full
	if since.IsZero() {
		r.missing = nil
	}
}

// outdated returns since when and why etcd does not answer, so that other replicas may have written; nil while it
// answers.
func (r *replicas) outdated() *tracker.RolloutOffline {
	r.mu.Lock()
	lost, full := r.lost, r.full
	r.mu.Unlock()
	if lost.IsZero() || full {
		return nil
	}
	return &tracker.RolloutOffline{Zone: "etcd", Since: lost, Reason: r.why()}
}

// outdatedTexts implements api.Config.Outdated.
func (r *replicas) outdatedTexts(bool, resources.Type) []string {
	store := r.outdated()
	if store == nil {
		return nil
	}
	return []string{"what others wrote since " + store.Since.UTC().Format(time.RFC3339) +
		" is unknown to the server that was asked: " + store.Reason}
}

// unheard returns since when and why the other replicas cannot be heard; zero while they can.
func (r *replicas) unheard() (since time.Time, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return r.lost, fullReason
	}
	return r.lost, cutOffReason
}

// why returns why this replica's data may be old, or "" if it is current.
func (r *replicas) why() string {
	if err := r.durable.Answers(); err != nil {
		return err.Error()
	}
	return ""
}

// apply applies the other replicas' zone status. Status of a zone that this replica has is outdated, or from before it
// had the zone, so it sends its own again.
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

// setPresent records which replicas are live.
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
	if !r.lost.IsZero() {
		r.missing = slices.DeleteFunc(append(r.missing, r.present...), func(m replica) bool {
			return m.Instance == r.instance || slices.ContainsFunc(present, func(p replica) bool { return p.Instance == m.Instance })
		})
	}
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
	// A late note, of a session that another replica has since taken over, would look like a server that came back.
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

// applyResource adds the operation for a note to b.
func (r *replicas) applyResource(b *store.Batch, zone string, key resources.Key, value []byte) {
	here := r.status.Snapshot().Get(key)
	if here != nil && value != nil && r.has(zone) { // mostly what this replica wrote itself
		if own, err := store.EncodeValue(store.EncodeKey(key), here); err == nil && bytes.Equal(own, value) {
			return
		}
	}
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

// dropUnnamed adds the removal of everything that is absent from the shared state to b.
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
