package global

import (
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// operator serves the sync status of zones, and the decisions that only a person may make.
type operator struct {
	store store.Reader
	sync  *kds.Global
	// outdated returns since when the data of this replica may be old, or nil if it is current.
	outdated func() *tracker.RolloutOffline
	routes   *api.Server
}

func (o *operator) register(routes *api.Server) {
	o.routes = routes
	routes.Handle(api.RouteZoneSync, o.status)
	routes.Handle(api.RouteZoneAcceptDeletes, o.acceptDeletes)
	routes.Handle(api.RouteZoneResync, o.resync)
	routes.AddConditions(o.conditions)
}

// request returns the zone and type of a request.
func (o *operator) request(r *http.Request) (zone string, t resources.Type, err error) {
	zone = r.PathValue("name")
	if key := kds.ZoneKey(zone); o.store.Snapshot().Get(key) == nil {
		return "", "", api.NotFound(key.String())
	}
	t, err = api.TypeOf(r)
	return zone, t, err
}

func (o *operator) status(w http.ResponseWriter, r *http.Request) error {
	zone, t, err := o.request(r)
	if err != nil {
		return err
	}
	look := func() (any, string) {
		status, _ := o.sync.Status(zone, t)
		if store := o.outdated(); store != nil {
			status.OutdatedSince, status.WhyOutdated = store.Since, store.Reason
		}
		status.Mark()
		return &status, status.Revision
	}
	return o.routes.AwaitOther(w, r, o.sync.Changing(zone), look)
}

func (o *operator) acceptDeletes(w http.ResponseWriter, r *http.Request) error {
	zone, t, err := o.request(r)
	if err != nil {
		return err
	}
	accepted, err := o.sync.AcceptDeletes(r.Context(), zone, t, r.URL.Query().Get("held"))
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, tracker.Steered{Types: accepted})
}

// resync compares all types even if one is named: a new session compares content hashes, which is cheap.
func (o *operator) resync(w http.ResponseWriter, r *http.Request) error {
	zone, t, err := o.request(r)
	if err != nil {
		return err
	}
	status, _ := o.sync.Status(zone, t)
	answer := tracker.Steered{Types: []tracker.Accepted{}}
	ended, err := o.sync.Resync(r.Context(), zone)
	if err != nil {
		return err
	}
	if ended {
		answer.Types = tracker.TypesOf(status)
	}
	return api.WriteJSON(w, http.StatusOK, answer)
}

// conditions returns the refusals of a resource of this server and, for a Zone, what its last report says.
func (o *operator) conditions(r *resources.Resource) []resources.Condition {
	out := tracker.Conditions(o.sync.Refused(r.Key))
	if r.Type != resources.TypeZone {
		return out
	}
	if report := o.sync.LastReport(r.Name); report != nil {
		out = append(out, report.Conditions()...)
	}
	return out
}
