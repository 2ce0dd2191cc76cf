package zone

import (
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// operator serves the state of the sync with the global, and the decisions that only an operator may make. link is nil
// for a zone that runs alone.
type operator struct {
	zone   string
	link   *kds.Zone
	routes *api.Server
}

func (o *operator) register(routes *api.Server) {
	o.routes = routes
	routes.Handle(api.RouteZoneSyncHere, o.status)
	routes.Handle(api.RouteZoneAcceptDeletes, o.acceptDeletes)
	routes.Handle(api.RouteZoneResync, o.resync)
	if o.link != nil {
		routes.AddConditions(
			func(r *resources.Resource) []resources.Condition { return tracker.Conditions(o.link.Refused(r.Key)) })
	}
}

func (o *operator) status(w http.ResponseWriter, r *http.Request) error {
	t, err := api.TypeOf(r)
	if err != nil {
		return err
	}
	look := func() (any, string) {
		status := tracker.SyncStatus{Zone: o.zone, Types: []tracker.TypeSync{}}
		if o.link != nil {
			status = o.link.Status(t)
		}
		status.Mark()
		return &status, status.Revision
	}
	changing := &tracker.Pulse{} // a zone that runs alone has none
	if o.link != nil {
		changing = o.link.Changing()
	}
	return o.routes.AwaitOther(w, r, changing, look)
}

// linked rejects requests that are meant for another zone or need a global.
func (o *operator) linked(r *http.Request) (resources.Type, error) {
	if r.PathValue("name") != o.zone || o.link == nil {
		return "", api.NotFound("sync with zone " + r.PathValue("name") + " here")
	}
	return api.TypeOf(r)
}

func (o *operator) acceptDeletes(w http.ResponseWriter, r *http.Request) error {
	t, err := o.linked(r)
	if err != nil {
		return err
	}
	accepted, err := o.link.AcceptDeletes(r.Context(), t, r.URL.Query().Get("held"))
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, tracker.Steered{Types: accepted})
}

func (o *operator) resync(w http.ResponseWriter, r *http.Request) error {
	t, err := o.linked(r)
	if err != nil {
		return err
	}
	answer := tracker.Steered{Types: []tracker.Accepted{}}
	if status := o.link.Status(t); o.link.Resync() {
		answer.Types = tracker.TypesOf(status)
	}
	return api.WriteJSON(w, http.StatusOK, answer)
}
