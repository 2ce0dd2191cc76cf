package zone

import (
	"net/http"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// behind lists the proxies that have not acknowledged everything, by the names of their Dataplanes.
func behind(standings []xds.Standing) []kds.ProxyBehind {
	list := []kds.ProxyBehind{}
	for _, one := range standings {
		if one.Behind {
			list = append(list, nameOf(one))
		}
	}
	return list
}

func nameOf(one xds.Standing) kds.ProxyBehind {
	return kds.ProxyBehind{Mesh: one.Dataplane.Mesh, Namespace: one.Dataplane.Namespace, Name: one.Dataplane.Name, Reason: one.Reason}
}

// rollout answers how far a resource of this zone has come: to the global, and to the zone's own proxies.
type rollout struct {
	store           store.Reader
	systemNamespace string
	standings       func() []xds.Standing
	// link is nil for a zone that runs alone.
	link *kds.Zone
	// routes judges who asks.
	routes *api.Server
}

func (o *rollout) serve(w http.ResponseWriter, r *http.Request) error {
	key, err := api.KeyOf(r)
	if err != nil {
		return err
	}
	snapshot := o.store.Snapshot()
	found, err := o.routes.Find(r, snapshot, resources.VerbRead, key)
	if err != nil {
		return err
	}
	answer := kds.NewRollout(found)
	if o.link != nil {
		answer = o.link.Rollout(found)
	}
	if found.Descriptor().Policy != nil {
		o.proxies(answer, found, snapshot, o.routes.Reader(r))
	}
	return api.WriteJSON(w, http.StatusOK, answer)
}

// proxies counts the connected proxies that the policy selects.
func (o *rollout) proxies(answer *kds.Rollout, policy *resources.Resource, snapshot store.Snapshot, reader *api.Reader) {
	selecting := matching.NewPolicy(policy, o.systemNamespace)
	for _, one := range o.standings() {
		dataplane := snapshot.Get(one.Dataplane)
		if dataplane == nil || dataplane.Mesh != policy.Mesh {
			continue
		}
		if proxy, err := matching.NewProxy(dataplane); err != nil || !matching.Selects(selecting, proxy) {
			continue
		}
		if !reader.May(dataplane) {
			answer.Proxies.LeftOut++
			continue
		}
		answer.Proxies.Total++
		if !one.Behind {
			answer.Proxies.Enforced++
			continue
		}
		answer.Proxies.Behind = append(answer.Proxies.Behind, nameOf(one))
	}
}
