package kubernetes

import (
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
)

// Replicas returns what is known of the replicas of a server: self, which leads, and those that wait. A server without a
// term is alone.
func Replicas(term *leader.Term, self *api.Replica) api.ReplicaList {
	if term == nil {
		return api.ReplicaList{Items: []api.Replica{*self}}
	}
	leads := *self
	lease, since := term.Lease()
	leads.Lease, leads.Since = lease, &since
	peers, err := term.Peers()
	return listed(&leads, peers, err)
}

// listed returns the list of a replica that leads, and of the pods of all, or the reason why these are unknown.
func listed(leads *api.Replica, peers []leader.Peer, unknown error) api.ReplicaList {
	list := api.ReplicaList{Items: []api.Replica{*leads}}
	if unknown != nil {
		list.Unknown = "which other replicas there are is unknown, because their pods cannot be listed: " + unknown.Error()
	}
	for _, p := range peers {
		if p.Leads {
			list.Items[0].Ready = p.Ready
			continue
		}
		waits := api.Replica{Instance: p.Pod, Addresses: []string{}, Started: p.Created, Lease: leads.Lease, Ready: p.Ready,
			Store: api.ReplicaStore{Kind: leads.Store.Kind}}
		if !p.Since.IsZero() {
			waits.Since = &p.Since
		}
		list.Items = append(list.Items, waits)
	}
	return list
}
