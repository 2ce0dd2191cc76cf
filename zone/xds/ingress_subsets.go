package xds

import (
	"cmp"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// maxSubsets limits the subsets of one port that an ingress serves, and maxOwnerSubsets those of all services of an owner of a
// namespace: each is a cluster of the ingress, which all namespaces share.
const maxSubsets, maxOwnerSubsets = 32, 1000

// askedSubset is a subset of a port that a route sends to.
type askedSubset struct {
	*backend

	// first orders the owners of routes, of whom by is one: operators and the owner of the service come first. turn counts what
	// one owner's routes ask for of the port, and then of all services of one owner.
	first, turn int
	by          resources.Owner
}

// subsets returns the subsets of this zone's services that the known routes of all zones send to. Each owner of routes has
// the same share of a port, and of an owner's services, so that no other can use up what there is of them.
func (n *network) subsets() []*backend {
	type share struct {
		of    string // a port, or a subset
		owner resources.Owner
	}
	var all []askedSubset
	turns, known := map[share]int{}, map[share]bool{}
	for _, t := range []resources.Type{resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute} {
		for r := range n.store.Snapshot().List(store.Query{Type: t}) {
			refs := resources.SubsetBackends(r)
			if len(refs) == 0 {
				continue
			}
			policy := matching.NewPolicy(r, n.home.SystemNamespace)
			from, owner := policy.Referrer(), policy.Owner()
			if owner.Zone != n.home.Zone {
				owner.Namespace = "" // its zone decides whose it is
			}
			for i := range refs {
				for _, b := range n.subsetPorts(from, &refs[i]) {
					port := share{b.key().String(), owner}
					if turns[port] == maxSubsets || known[share{b.name, owner}] {
						continue
					}
					one := askedSubset{backend: b, first: 1, turn: turns[port], by: owner}
					known[share{b.name, owner}] = true
					turns[port]++
					if owner.IsGlobal() || owner == (resources.Owner{Zone: n.home.Zone}) || owner == n.ownerOf(b) {
						one.first = 0
					}
					all = append(all, one)
				}
			}
		}
	}
	return n.servedSubsets(ofPorts(all))
}

// inTurn sorts by the owners of routes, and then by turns.
func inTurn(all []askedSubset) {
	slices.SortStableFunc(all, func(a, b askedSubset) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.turn, b.turn)) })
}

// ofPorts leaves out what its port has no room for.
func ofPorts(all []askedSubset) []askedSubset {
	inTurn(all)
	of, taken := map[string]int{}, map[string]bool{}
	return slices.DeleteFunc(all, func(one askedSubset) bool {
		port := one.key().String()
		if !taken[one.name] && of[port] < maxSubsets {
			taken[one.name] = true
			of[port]++
		}
		return !taken[one.name]
	})
}

// servedSubsets returns those for which the owner of the services has room, each once.
func (n *network) servedSubsets(all []askedSubset) []*backend {
	turns := map[[2]resources.Owner]int{}
	for i := range all {
		share := [2]resources.Owner{all[i].by, n.ownerOf(all[i].backend)}
		all[i].turn = turns[share]
		turns[share]++
	}
	inTurn(all)
	var out []*backend
	of, taken := map[resources.Owner]int{}, map[string]bool{}
	for i := range all {
		b := all[i].backend
		owner := n.ownerOf(b)
		if taken[b.name] || !owner.IsOperator() && of[owner] == maxOwnerSubsets {
			continue
		}
		taken[b.name] = true
		of[owner]++
		out = append(out, b)
	}
	return out
}

// ownerOf returns the owner of a backend's service.
func (n *network) ownerOf(b *backend) resources.Owner {
	return resources.OwnerOf(b.service.Resource, n.home.SystemNamespace)
}

func namesSubset(route *resources.Resource) bool {
	return route != nil && len(resources.SubsetBackends(route)) > 0
}

// subsetPorts returns the ports of this zone that a reference to a subset may mean.
func (n *network) subsetPorts(from matching.Referrer, ref *resources.BackendRef) []*backend {
	target, problem := n.in(from.Mesh).ResolveBackend(from, ref)
	if problem != "" || target.Destination.Resource.Zone() != n.home.Zone {
		return nil
	}
	sections := []string{target.Section}
	if target.Section == "" {
		sections = target.Destination.Sections()
	}
	var out []*backend
	for _, section := range sections {
		if b, ok := newBackend(target.Destination, section); ok {
			b.localOnly = true
			out = append(out, b.of(ref.Subset()))
		}
	}
	return out
}
