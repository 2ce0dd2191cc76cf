package global

import (
	"net/http"
	"slices"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// rollout answers how far a resource has come among the zones and their proxies.
type rollout struct {
	store, status   store.Reader
	systemNamespace string
	sync            *kds.Global
	// routes judges who asks.
	routes *api.Server
}

func (o *rollout) register(routes *api.Server) {
	o.routes = routes
	routes.Handle(api.RouteRollout, o.serve)
}

func (o *rollout) serve(w http.ResponseWriter, r *http.Request) error {
	key, err := api.KeyOf(r)
	if err != nil {
		return err
	}
	found, err := o.routes.Find(r, o.store.Snapshot(), resources.VerbRead, key)
	if err != nil {
		return err
	}
	answer := o.sync.Rollout(found)
	if found.Descriptor().Policy != nil {
		o.proxies(answer, found, o.routes.Reader(r))
	}
	return api.WriteJSON(w, http.StatusOK, answer)
}

// proxies counts the connected proxies that the policy selects, in the zones that it goes to and in the one it is from.
func (o *rollout) proxies(answer *kds.Rollout, policy *resources.Resource, reader *api.Reader) {
	zones := o.sync.Reach(policy)
	if from := policy.Zone(); from != "" {
		zones = append(zones, from)
	}
	selecting := matching.NewPolicy(policy, o.systemNamespace)
	said := map[string]*word{}
	for dataplane := range o.store.Snapshot().List(store.Query{Type: resources.TypeDataplane, Mesh: policy.Mesh}) {
		zone := dataplane.Zone()
		if !slices.Contains(zones, zone) || !o.connected(dataplane) {
			continue
		}
		if proxy, err := matching.NewProxy(dataplane); err != nil || !matching.Selects(selecting, proxy) {
			continue
		}
		if !reader.May(dataplane) {
			answer.Proxies.LeftOut++
			continue
		}
		if said[zone] == nil {
			said[zone] = o.word(zone, policy, answer)
		}
		answer.Proxies.Total++
		name := kds.ProxyBehind{Mesh: dataplane.Mesh, Namespace: dataplane.HomeNamespace(), Name: dataplane.DisplayName()}
		if reason, late := said[zone].behind[name]; late || !said[zone].has {
			name.Reason = reason
			answer.Proxies.Behind = append(answer.Proxies.Behind, name)
			continue
		}
		answer.Proxies.Enforced++
	}
}

// word is what a zone's last report means for one policy.
type word struct {
	// has: the zone has the revision, and proxies that are not behind enforce it.
	has bool
	// behind holds reasons, by the proxy's name without one.
	behind map[kds.ProxyBehind]string
}

func (o *rollout) word(zone string, policy *resources.Resource, answer *kds.Rollout) *word {
	w := &word{behind: map[kds.ProxyBehind]string{}}
	report := o.sync.LastReport(zone)
	switch {
	case report == nil: // a zone that cannot report: its word is its acknowledgement
		w.has = zone == policy.Zone() || answer.Zones.Has(zone)
		return w
	case zone == policy.Zone(): // its own: it reports again once the global has acknowledged
		w.has = report.Received.After(policy.ModificationTime)
	default:
		w.has = report.Applied[policy.Type] >= policy.Revision
	}
	for _, p := range report.Behind {
		reason := p.Reason
		p.Reason = ""
		w.behind[p] = reason
	}
	return w
}

// connected reports whether the Dataplane's proxy is, by its insight.
func (o *rollout) connected(dataplane *resources.Resource) bool {
	key := dataplane.Key
	key.Type = resources.TypeDataplaneInsight
	insight := o.status.Snapshot().Get(key)
	if insight == nil {
		insight = o.store.Snapshot().Get(key)
	}
	if insight == nil {
		return false
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(spec.GetSubscriptions(), func(s *meshpb.DiscoverySubscription) bool { return s.GetDisconnectTime() == nil })
}
