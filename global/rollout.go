package global

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// rollout reports how far a resource has come across the zones and their proxies.
type rollout struct {
	store, status   store.Reader
	systemNamespace string
	sync            *kds.Global
	replicas        *replicas
	// routes authorises the caller.
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
	snapshot := o.store.Snapshot()
	found, err := o.routes.Find(r, snapshot, resources.VerbRead, key)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, o.of(found, o.routes.Reader(r)))
}

// of returns how far a resource has come, limited to what the reader may see. A nil reader may see everything.
func (o *rollout) of(found *resources.Resource, reader *api.Reader) *tracker.Rollout {
	snapshot, answer := o.store.Snapshot(), o.sync.Rollout(found)
	answer.Source = o.replicas.outdated()
	if selection := matching.NewSelection(found, o.systemNamespace,
		snapshot.List(store.Query{Type: resources.TypeMeshGateway, Mesh: found.Mesh})); selection != nil {
		answer.NotEnforced = selection.NotEnforced()
		(&counting{rollout: o, selection: selection, snapshot: snapshot, reader: reader, answer: answer,
			said: map[string]*word{}}).proxies()
	}
	return answer
}

// counting is one answer under construction.
type counting struct {
	*rollout
	selection *matching.Selection
	snapshot  store.Snapshot
	reader    *api.Reader
	answer    *tracker.Rollout
	// said holds the reports of zones, by name.
	said map[string]*word
	// services are the mesh's MeshServices, which define protocols: see meshServices.
	services []*resources.Resource
}

// meshServices lists the MeshServices once they are needed.
func (c *counting) meshServices() []*resources.Resource {
	if c.services == nil {
		c.services = slices.Collect(c.snapshot.List(store.Query{Type: resources.TypeMeshService, Mesh: c.selection.Mesh}))
	}
	return c.services
}

// proxies counts the selected Dataplanes in the zones that should have the resource and in its zone of origin.
func (c *counting) proxies() {
	of := c.selection.Resource
	zones := map[string]bool{}
	for _, zone := range c.sync.Meant(of) {
		zones[zone] = true
	}
	if from := of.Zone(); from != "" {
		zones[from] = true
		if since, away := c.absence(from); away != "" {
			c.answer.Zones.Away = append(c.answer.Zones.Away, tracker.RolloutOffline{Zone: from, Since: since,
				Unheard: c.sync.Unheard(from)})
		}
	}
	for dataplane := range c.snapshot.List(store.Query{Type: resources.TypeDataplane, Mesh: c.selection.Mesh,
		Labels: c.selection.Labels()}) {
		if !zones[dataplane.Zone()] || !c.selection.Has(dataplane) {
			continue
		}
		if !c.reader.May(dataplane) {
			c.answer.Proxies.LeftOut++
			continue
		}
		c.proxy(dataplane)
	}
}

// proxy counts one Dataplane by its zone's last report, if that is still valid.
func (c *counting) proxy(dataplane *resources.Resource) {
	zone, proxies := dataplane.Zone(), &c.answer.Proxies
	if c.said[zone] == nil {
		c.said[zone] = c.word(zone)
	}
	said := c.said[zone]
	proxies.Total++
	name := tracker.ProxyBehind{Mesh: dataplane.Mesh, Namespace: dataplane.HomeNamespace(), Name: dataplane.DisplayName()}
	since, why := said.since, said.unknown
	if why == "" {
		since, why = c.disconnected(dataplane, said)
	}
	reason, late := said.behind[name]
	if why == "" && !late && said.more > 0 {
		since, why = said.since, fmt.Sprintf("%s has more proxies that are behind than it names, %d,", zone, said.more)
	}
	switch {
	case why != "":
		proxies.Unknown = append(proxies.Unknown, tracker.ProxyUnknown{
			Mesh: name.Mesh, Namespace: name.Namespace, Name: name.Name, Zone: zone, Reason: why, Since: since,
		})
	case late || !said.has:
		name.Reason, name.Zone = reason, zone
		proxies.Behind = append(proxies.Behind, name)
	case !c.selection.Enforced():
	default:
		left, known := c.selection.LeftOut(dataplane, matching.ProblemsOf(c.insight(dataplane)), c.meshServices())
		switch {
		case !known:
			proxies.Unknown = append(proxies.Unknown, tracker.ProxyUnknown{Mesh: name.Mesh, Namespace: name.Namespace,
				Name: name.Name, Zone: zone, Reason: left})
		case left == "":
			proxies.Enforced++
		default:
			c.answer.NotEnforced = matching.NameLeftOut(c.answer.NotEnforced, dataplane, left)
		}
	}
}

// word is what a zone's last report says about one resource.
type word struct {
	// has is set if the zone has the revision. Then proxies that are not behind enforce it.
	has bool
	// behind holds reasons, by the proxy's name without one.
	behind map[tracker.ProxyBehind]string
	// unknown is the reason why the report does not count now, or "" if it does. since is since when.
	unknown string
	since   time.Time
	// more counts proxies that are behind but unnamed. streams counts those that the report covers.
	more    int
	streams uint32
}

func (c *counting) word(zone string) *word {
	w, of := &word{behind: map[tracker.ProxyBehind]string{}}, c.selection.Resource
	if w.since, w.unknown = c.absence(zone); w.unknown != "" {
		return w
	}
	report := c.sync.LastReport(zone)
	session, _ := c.sync.Away(zone)
	switch {
	case report == nil:
		w.since, w.unknown = session, zone+" has told nothing of its proxies"
		return w
	case report.Received.Before(session):
		w.since, w.unknown = report.Received, zone+" has told nothing of its proxies, though it is back,"
		return w
	case zone == of.Zone() && report.Own == 0:
		w.since, w.unknown = report.Received, zone+" does not say which of its own policies its proxies have,"
		return w
	case zone == of.Zone(): // its own zone reports again once the global has acknowledged
		w.has = c.sync.Covers(zone, report, of.Type)
	default:
		w.has = report.Applied[of.Type] >= of.Revision
	}
	w.more, w.streams, w.since = report.More, report.Streams, report.Received
	for _, p := range report.Behind {
		reason := p.Reason
		p.Reason, p.Zone = "", ""
		w.behind[p] = reason
	}
	return w
}

// behind returns why the connected proxy of a Dataplane has not acknowledged all that it should have, by its zone's last
// report, and whether that is so or unknown.
func (o *rollout) behind(key resources.Key, zone string) (reason string, is bool) {
	report, dataplane := o.sync.LastReport(zone), o.store.Snapshot().Get(key)
	if session, _ := o.sync.Away(zone); report == nil || report.Received.Before(session) {
		return zone + " has told nothing of its proxies since it connected", true
	}
	if dataplane == nil {
		return "", false
	}
	if open, _ := matching.Connected(o.insight(dataplane)); open.GetGeneration() > report.Streams {
		return zone + " has not told of it since it connected", true
	}
	for _, p := range report.Behind {
		if p.Mesh == dataplane.Mesh && p.Namespace == dataplane.HomeNamespace() && p.Name == dataplane.DisplayName() {
			return p.Reason, true
		}
	}
	if report.More > 0 {
		return fmt.Sprintf("%s has more proxies that are behind than it names, %d", zone, report.More), true
	}
	return "", false
}

// absence returns since when and why a zone is offline. The reason is empty for a connected zone.
func (o *rollout) absence(zone string) (since time.Time, why string) {
	since, away := o.sync.Away(zone)
	switch {
	case !away:
		return time.Time{}, ""
	case !kds.ZoneEnabled(o.store.Snapshot(), zone):
		return since, zone + " disabled, offline"
	case o.sync.Unheard(zone):
		return since, zone + " not heard of"
	case since.IsZero():
		return o.sync.Started(), zone + " not seen"
	}
	return since, zone + " offline"
}

// disconnected returns since when and why the zone's report does not cover the Dataplane's proxy: by its insight, the
// proxy is not connected to the zone, or connected later. The reason is empty if the report covers it.
func (o *rollout) disconnected(dataplane *resources.Resource, said *word) (since time.Time, why string) {
	open, since := matching.Connected(o.insight(dataplane))
	switch {
	case open != nil && open.GetGeneration() > said.streams:
		return open.GetConnectTime().AsTime(), dataplane.Zone() + " has not told of it, connected"
	case open != nil:
		return time.Time{}, ""
	case since.IsZero():
		return since, "not connected, says " + dataplane.Zone()
	}
	return since, "not connected"
}

// insight returns the insight of the Dataplane's proxy, or nil.
func (o *rollout) insight(dataplane *resources.Resource) *resources.Resource {
	key := dataplane.Key
	key.Type = resources.TypeDataplaneInsight
	if insight := o.status.Snapshot().Get(key); insight != nil {
		return insight
	}
	return o.store.Snapshot().Get(key)
}
