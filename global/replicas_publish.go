package global

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// zoneNote is the state of a zone in the shared state, beside its resources.
type zoneNote struct {
	// Replica is the one that has or last had the zone.
	Replica string             `json:"replica"`
	State   *tracker.ZoneState `json:"state"`
}

// Keys of notes: zones/ZONE/state and zones/ZONE/r/KEY, with KEY as in the store.
const (
	zonesPrefix    = "zones/"
	stateSuffix    = "/state"
	resourcesInfix = "/r/"
)

func zonePrefix(zone string) string { return zonesPrefix + zone + "/" }

func noteKey(zone string, key resources.Key) string {
	return zonesPrefix + zone + resourcesInfix + string(store.EncodeKey(key))
}

// zoneOf returns the zone of a resource of the status store.
func zoneOf(r *resources.Resource) string {
	if r.Type == resources.TypeZoneInsight {
		return r.Name
	}
	return r.Zone()
}

// publishAlways sends changes until ctx ends, at most once per publishInterval except for those that somebody waits
// for. While idle, it waits without a timer.
func (r *replicas) publishAlways(ctx context.Context) error {
	seen := r.status.Snapshot().Revision()
	for {
		now, changed := r.status.Changed()
		if now == seen {
			select {
			case <-changed:
			case <-r.wake:
			case <-r.urgent:
			case <-ctx.Done():
				return nil
			}
		}
		if next, err := r.publish(ctx, seen); err == nil {
			seen = next
		} else if ctx.Err() == nil {
			r.log.Warn("cannot send the status of zones to the other replicas: trying again", "error", err)
		}
		pause := time.NewTimer(publishInterval)
		select {
		case <-pause.C:
		case <-r.urgent:
			pause.Stop()
			poke(r.wake)
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// publish writes pending changes, and returns the revision up to which the status store has been sent.
func (r *replicas) publish(ctx context.Context, seen uint64) (uint64, error) {
	r.mu.Lock()
	dirtyZones, dirtyKeys := r.dirtyZones, r.dirtyKeys
	r.dirtyZones, r.dirtyKeys = map[string]bool{}, map[resources.Key]bool{}
	r.mu.Unlock()
	var notes []etcd.Note
	for zone := range dirtyZones {
		if r.has(zone) {
			notes = r.appendState(notes, zone, r.sync.State(zone))
		}
	}
	keys, next := r.changedKeys(seen, dirtyKeys)
	notes, gone := r.appendResources(notes, keys)
	var offline []string
	if since, _ := r.unheard(); since.IsZero() && r.leads() {
		notes, offline = r.appendOffline(ctx, notes)
	}
	if len(notes) == 0 {
		return next, nil
	}
	err := r.shared.Put(ctx, notes)
	if errors.Is(err, etcd.ErrNoteTooLarge) {
		r.log.Error("cannot send the whole status of zones to the other replicas", "error", err)
		return next, nil
	}
	if err != nil {
		r.mu.Lock()
		for zone := range dirtyZones {
			r.dirtyZones[zone] = true
		}
		for key := range keys {
			r.dirtyKeys[key] = true
		}
		for key, zone := range gone {
			if _, again := r.published[key]; !again {
				r.published[key] = zone
			}
		}
		for _, zone := range offline {
			if heard, known := r.remote[zone]; known {
				heard.connected = true // as the shared state still says
				r.remote[zone] = heard
			}
		}
		r.mu.Unlock()
		poke(r.wake)
	}
	return next, err
}

func (r *replicas) appendState(notes []etcd.Note, zone string, state *tracker.ZoneState) []etcd.Note {
	if state == nil {
		return notes
	}
	value, err := json.Marshal(zoneNote{Replica: r.instance, State: state})
	if err != nil {
		r.log.Error("cannot encode the status of a zone", "zone", zone, "error", err)
		return notes
	}
	return append(notes, etcd.Note{Key: zonesPrefix + zone + stateSuffix, Value: value})
}

// changedKeys returns dirtyKeys and the status resources that changed after seen, or all if the changes are unknown.
func (r *replicas) changedKeys(seen uint64, dirtyKeys map[resources.Key]bool) (keys map[resources.Key]bool, next uint64) {
	keys = dirtyKeys
	commits, ok := r.status.Changes(seen)
	if !ok {
		snapshot := r.status.Snapshot()
		for _, t := range []resources.Type{resources.TypeZoneInsight, resources.TypeDataplaneInsight} {
			for one := range snapshot.List(store.Query{Type: t}) {
				keys[one.Key] = true
			}
		}
		r.mu.Lock()
		for key := range r.published {
			keys[key] = true
		}
		r.mu.Unlock()
		return keys, snapshot.Revision()
	}
	next = seen
	for _, c := range commits {
		next = c.Revision
		for i := range c.Changes {
			keys[c.Changes[i].Key()] = true
		}
	}
	return keys, next
}

// appendResources adds the resources of own zones. It removes deleted ones and returns them with their zones.
func (r *replicas) appendResources(notes []etcd.Note, keys map[resources.Key]bool) (_ []etcd.Note,
	gone map[resources.Key]string) {
	gone = map[resources.Key]string{}
	snapshot := r.status.Snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range keys {
		found := snapshot.Get(key)
		if found == nil {
			if zone, ok := r.published[key]; ok {
				delete(r.published, key)
				if r.has(zone) {
					notes, gone[key] = append(notes, etcd.Note{Key: noteKey(zone, key)}), zone
				}
			}
			continue
		}
		zone := zoneOf(found)
		if zone == "" || !r.has(zone) {
			continue
		}
		value, err := store.EncodeValue(store.EncodeKey(key), found)
		if err != nil {
			r.log.Error("cannot encode a resource for the other replicas", "type", string(key.Type), "name", key.Name,
				"error", err)
			continue
		}
		r.published[key] = zone
		notes = append(notes, etcd.Note{Key: noteKey(zone, key), Value: value})
	}
	return notes, gone
}

// appendOffline ends the sessions of zones whose replica is gone and cannot end them itself. It returns the zones.
func (r *replicas) appendOffline(ctx context.Context, notes []etcd.Note) (_ []etcd.Note, gone []string) {
	r.mu.Lock()
	for zone, heard := range r.remote {
		alive := slices.ContainsFunc(r.present, func(m replica) bool { return m.Instance == heard.replica })
		if heard.connected && !alive && !r.has(zone) {
			gone = append(gone, zone)
			r.remote[zone] = remoteZone{replica: heard.replica}
		}
	}
	r.mu.Unlock()
	if len(gone) == 0 {
		return notes, nil
	}
	r.log.Warn("the replica that had these zones is gone, and they have not connected to another one", "zones", len(gone),
		"first", gone[:min(len(gone), firstOffline)])
	var status store.Batch
	for _, zone := range gone {
		state := r.sync.State(zone)
		if state == nil {
			continue
		}
		now := r.now()
		if state.Connected { // otherwise it could not be sent the last time
			state.Connected, state.Since = false, now
			r.sync.Adopt(zone, state)
		}
		notes = r.appendState(notes, zone, state)
		insight := r.status.Snapshot().Get(insightKey(zone))
		if insight == nil {
			continue
		}
		ended, err := endedInsight(insight, now)
		if err != nil {
			continue
		}
		status.Ops = append(status.Ops, store.Op{Put: ended})
	}
	if len(status.Ops) == 0 {
		return notes, gone
	}
	if _, err := r.status.Apply(ctx, status); err != nil {
		return notes, gone
	}
	for i := range status.Ops {
		ended := status.Ops[i].Put
		if value, err := store.EncodeValue(store.EncodeKey(ended.Key), ended); err == nil {
			notes = append(notes, etcd.Note{Key: noteKey(ended.Name, ended.Key), Value: value})
		}
	}
	return notes, gone
}

// firstOffline is how many of the zones of a replica that is gone the log names.
const firstOffline = 10

// endedInsight returns a ZoneInsight with all its subscriptions ended.
func endedInsight(insight *resources.Resource, at time.Time) (*resources.Resource, error) {
	spec, err := resources.SpecAs[systempb.ZoneInsight](insight)
	if err != nil {
		return nil, err
	}
	all := proto.Clone(spec).(*systempb.ZoneInsight)
	for i, s := range all.GetSubscriptions() {
		all.Subscriptions[i] = endedSession(s, at)
	}
	out := insight.Clone()
	out.Spec, err = resources.NewStatusSpec(insight.Type, all)
	return out, err
}

// endedSession returns s with its end set to at, or s itself if it has already ended. The caller must not change the result.
func endedSession(s *systempb.KDSSubscription, at time.Time) *systempb.KDSSubscription {
	if s.GetDisconnectTime() != nil {
		return s
	}
	s = proto.Clone(s).(*systempb.KDSSubscription)
	s.DisconnectTime = timestamppb.New(notBefore(at, s.GetConnectTime().AsTime()))
	return s
}
