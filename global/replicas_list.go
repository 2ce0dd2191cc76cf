package global

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/server"
)

// self returns this replica's current entry.
func (r *replicas) self() replica {
	return replica{Instance: r.instance, Addresses: r.addresses, Version: server.Version(), Started: r.started,
		Revision: r.durable.Snapshot().Revision()}
}

// shown returns self, encoded for the shared state.
func (r *replicas) shown() []byte {
	value, err := json.Marshal(r.self())
	if err != nil {
		r.log.Error("cannot encode this replica's entry", "error", err)
	}
	return value
}

// showAlways updates the revision in this replica's entry, at most once per publishInterval, until ctx ends. While
// idle, it waits without a timer.
func (r *replicas) showAlways(ctx context.Context) error {
	for seen := r.durable.Snapshot().Revision(); ; {
		now, changed := r.durable.Changed()
		if now == seen {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
		pause := time.NewTimer(publishInterval) // later changes are included
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
		seen = r.durable.Snapshot().Revision()
		poke(r.moved)
	}
}

// zonesOf counts the zones with a session, by replica.
func (r *replicas) zonesOf() map[string]int {
	zones := map[string]int{}
	r.mu.Lock()
	for zone, heard := range r.remote {
		if heard.connected && heard.replica != r.instance && !r.has(zone) {
			zones[heard.replica]++
		}
	}
	r.mu.Unlock()
	zones[r.instance] = r.sync.Sessions()
	return zones
}

// list returns all replicas: this one first if the shared state lacks it, then in order of arrival.
func (r *replicas) list() api.ReplicaList {
	r.mu.Lock()
	present, missing := r.present, r.missing
	r.mu.Unlock()
	zones, refuses, away := r.zonesOf(), r.durable.Healthy(), r.durable.Current()
	unheard, why := r.unheard()
	var out []api.Replica
	add := func(m *replica, leads, live bool) {
		one := api.Replica{
			Instance: m.Instance, Addresses: append([]string{}, m.Addresses...), Version: m.Version, Started: m.Started,
			Revision: m.Revision,
			Zones:    zones[m.Instance], Leads: leads, Asked: m.Instance == r.instance, Store: api.ReplicaStore{Kind: r.kind},
		}
		// A replica in the shared state has a lease that etcd has renewed recently.
		if reachable, writable := away == nil, refuses == nil; one.Asked || reachable && live {
			one.Store.Reachable, one.Store.Writable = &reachable, &writable
		}
		if one.Asked && refuses != nil {
			one.Store.Error = refuses.Error()
		}
		if !one.Asked && !unheard.IsZero() {
			one.Unheard, one.WhyUnheard = &unheard, why
		}
		out = append(out, one)
	}
	self, there := r.self(), false
	for i := range present {
		if present[i].Instance == r.instance {
			there = true
			add(&self, r.leads(), true)
		} else {
			add(&present[i], i == 0, true)
		}
	}
	if !there {
		add(&self, r.shared == nil, true)
		out = append(out[len(out)-1:], out[:len(out)-1]...)
	}
	for i := range missing {
		add(&missing[i], false, false)
	}
	if r.term != nil { // it is the only one
		return kubernetes.Replicas(r.term, &out[0])
	}
	return api.ReplicaList{Items: out}
}

func (r *replicas) serve(w http.ResponseWriter, _ *http.Request) error {
	return api.WriteJSON(w, http.StatusOK, r.list())
}
