package global

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/server"
)

// self is what this replica says of itself now.
func (r *replicas) self() replica {
	return replica{Instance: r.instance, Addresses: r.addresses, Version: server.Version(), Started: r.started, Revision: r.durable.Snapshot().Revision()}
}

// shown is self as the board has it.
func (r *replicas) shown() []byte {
	value, err := json.Marshal(r.self())
	if err != nil {
		r.log.Error("what this replica is cannot be written", "error", err)
	}
	return value
}

// showAlways has the board show up to where this replica shows the store, at most once in tellInterval, until ctx ends. While
// nothing changes it waits without a timer.
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
		pause := time.NewTimer(tellInterval) // what changes meanwhile is shown along
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

// zonesOf counts, by replica, the zones that have a session with it.
func (r *replicas) zonesOf() map[string]int {
	zones := map[string]int{}
	r.mu.Lock()
	for zone, heard := range r.heard {
		if heard.connected && heard.replica != r.instance && !r.has(zone) {
			zones[heard.replica]++
		}
	}
	r.mu.Unlock()
	zones[r.instance] = r.sync.Sessions()
	return zones
}

// list is all replicas, this one first when the board does not have it, then in order of arrival.
func (r *replicas) list() []api.Replica {
	r.mu.Lock()
	members := r.members
	r.mu.Unlock()
	zones, away := r.zonesOf(), r.durable.Healthy()
	var out []api.Replica
	add := func(m *replica, leads bool) {
		one := api.Replica{
			Instance: m.Instance, Addresses: append([]string{}, m.Addresses...), Version: m.Version, Started: m.Started, Revision: m.Revision,
			Zones: zones[m.Instance], Leads: leads, Asked: m.Instance == r.instance, Store: api.ReplicaStore{Kind: r.kind},
		}
		// Who is on the board has a lease that etcd has renewed a moment ago.
		if reachable := away == nil; reachable || one.Asked {
			one.Store.Reachable = &reachable
		}
		if one.Asked && away != nil {
			one.Store.Error = away.Error()
		}
		out = append(out, one)
	}
	self, there := r.self(), false
	for i := range members {
		if members[i].Instance == r.instance {
			there = true
			add(&self, i == 0)
		} else {
			add(&members[i], i == 0)
		}
	}
	if !there {
		add(&self, r.board == nil)
		out = append(out[len(out)-1:], out[:len(out)-1]...)
	}
	return out
}

func (r *replicas) serve(w http.ResponseWriter, _ *http.Request) error {
	return api.WriteJSON(w, http.StatusOK, api.ReplicaList{Items: r.list()})
}
