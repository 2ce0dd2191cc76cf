package zone

import (
	"net/http"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// behindOf lists the proxies that are behind, and returns how many streams this covers. A proxy whose problems have not
// reached the global counts as behind: the global could not tell it from success. reported is true once the global has
// a revision of the status store.
func behindOf(proxies *xds.Proxies, reported func(revision uint64) bool) (list []tracker.ProxyBehind, streams uint32) {
	streams = proxies.Streams() // first, so that the statuses include at least these
	return behind(proxies.SyncStatuses(), reported), streams
}

// behind lists the proxies that have not acknowledged their whole configuration, by the names of their Dataplanes.
func behind(statuses []xds.SyncStatus, reported func(revision uint64) bool) []tracker.ProxyBehind {
	list := []tracker.ProxyBehind{}
	for _, one := range statuses {
		if one.Behind || one.Unreported || one.ReportedAt > 0 && !reported(one.ReportedAt) {
			list = append(list, nameOf(one))
		}
	}
	return list
}

func nameOf(one xds.SyncStatus) tracker.ProxyBehind {
	return tracker.ProxyBehind{Mesh: one.Dataplane.Mesh, Namespace: one.Dataplane.Namespace, Name: one.Dataplane.Name,
		Reason: one.Reason}
}

// rollout reports how far a resource of this zone has come: to the global, and to the zone's own proxies.
type rollout struct {
	zone            string
	store, status   store.Reader
	systemNamespace string
	// started is the time from which this server knows about proxies.
	started  time.Time
	statuses func() []xds.SyncStatus
	// link is nil for a zone that runs alone.
	link *kds.Zone
	// routes authorizes the caller.
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
	return api.WriteJSON(w, http.StatusOK, o.of(found, o.routes.Reader(r)))
}

// of returns how far a resource has come, limited to what the reader may see.
func (o *rollout) of(found *resources.Resource, reader *api.Reader) *tracker.Rollout {
	snapshot := o.store.Snapshot()
	answer := tracker.NewRollout(found)
	if o.link != nil {
		answer = o.link.Rollout(found)
	}
	answer.Zone = o.zone
	if selection := matching.NewSelection(found, o.systemNamespace,
		snapshot.List(store.Query{Type: resources.TypeMeshGateway, Mesh: found.Mesh})); selection != nil {
		answer.NotEnforced = selection.NotEnforced()
		o.proxies(answer, selection, snapshot, reader)
	}
	return answer
}

// proxies counts the selected Dataplanes. A connected proxy counts by its own status; the status of others is unknown.
func (o *rollout) proxies(answer *tracker.Rollout, selection *matching.Selection, snapshot store.Snapshot,
	reader *api.Reader) {
	statuses := map[resources.Key]xds.SyncStatus{}
	for _, one := range o.statuses() { // an Envoy and a program without a proxy may have one Dataplane
		if before, twice := statuses[one.Dataplane]; !twice || !before.Behind {
			statuses[one.Dataplane] = one
		}
	}
	proxies, status := &answer.Proxies, o.status.Snapshot()
	services := slices.Collect(snapshot.List(store.Query{Type: resources.TypeMeshService, Mesh: selection.Mesh}))
	for dataplane := range snapshot.List(store.Query{Type: resources.TypeDataplane, Mesh: selection.Mesh}) {
		if !selection.Has(dataplane) {
			continue
		}
		if !reader.May(dataplane) {
			proxies.LeftOut++
			continue
		}
		proxies.Total++
		one, connected := statuses[dataplane.Key]
		switch {
		case !connected:
			proxies.Unknown = append(proxies.Unknown, o.away(dataplane, status))
		case one.Behind:
			proxies.Behind = append(proxies.Behind, nameOf(one))
		case !selection.Enforced():
		default:
			why, known := selection.LeftOut(dataplane, one.Problems, services)
			switch {
			case !known:
				proxies.Unknown = append(proxies.Unknown, tracker.ProxyUnknown{Mesh: dataplane.Mesh,
					Namespace: dataplane.Namespace, Name: dataplane.Name, Reason: why})
			case why == "":
				proxies.Enforced++
			default:
				answer.NotEnforced = matching.NameLeftOut(answer.NotEnforced, dataplane, why)
			}
		}
	}
}

func insightKey(dataplane *resources.Resource) resources.Key {
	key := dataplane.Key
	key.Type = resources.TypeDataplaneInsight
	return key
}

// away describes a Dataplane whose proxy is not connected, with since when, if known.
func (o *rollout) away(dataplane *resources.Resource, status store.Snapshot) tracker.ProxyUnknown {
	out := tracker.ProxyUnknown{Mesh: dataplane.Mesh, Namespace: dataplane.Namespace, Name: dataplane.Name,
		Reason: "not connected"}
	if _, out.Since = matching.Connected(status.Get(insightKey(dataplane))); out.Since.IsZero() {
		out.Since, out.Reason = o.started, "not seen"
	}
	return out
}
