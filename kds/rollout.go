package kds

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Rollout is how far one revision of a resource has come.
type Rollout struct {
	Type      resources.Type `json:"type"`
	Mesh      string         `json:"mesh"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	KRI       string         `json:"kri"`
	Revision  uint64         `json:"revision"`
	Stored    bool           `json:"stored"`
	Zones     RolloutZones   `json:"zones"`
	Proxies   RolloutProxies `json:"proxies"`
}

// RolloutZones are the servers that a resource goes to, by what they have said. On a zone it is the global.
type RolloutZones struct {
	Acknowledged int              `json:"acknowledged"`
	Total        int              `json:"total"`
	Offline      []RolloutOffline `json:"offline"`
	Refused      []RolloutRefused `json:"refused"`
	Pending      []string         `json:"pending"`

	reached map[string]bool
}

// Has reports whether a server has acknowledged the revision.
func (z *RolloutZones) Has(name string) bool { return z.reached[name] }

// RolloutOffline is a server that is away and has not acknowledged the revision.
type RolloutOffline struct {
	Zone string `json:"zone"`
	// Since is zero for one that has not connected since this server started.
	Since time.Time `json:"since,omitzero"`
}

// RolloutRefused is a server that does not take the resource.
type RolloutRefused struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// RolloutProxies counts the connected proxies that a policy selects, and those that have acknowledged what follows from it.
type RolloutProxies struct {
	Enforced int           `json:"enforced"`
	Total    int           `json:"total"`
	Behind   []ProxyBehind `json:"behind"`
	// LeftOut counts the proxies that are not in the other counts, because who asks may not read them.
	LeftOut int `json:"leftOut,omitempty"`
}

// NewRollout is that of a stored resource, before anybody was asked.
func NewRollout(r *resources.Resource) *Rollout {
	return &Rollout{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name, KRI: resources.KRIOf(r).String(), Revision: r.Revision, Stored: true,
		Zones:   RolloutZones{Offline: []RolloutOffline{}, Refused: []RolloutRefused{}, Pending: []string{}},
		Proxies: RolloutProxies{Behind: []ProxyBehind{}},
	}
}

// add says how one server stands to a revision.
func (z *RolloutZones) add(name string, revision uint64, l *ledger, refused []RefusedBy, key lineKey) {
	z.Total++
	for _, by := range refused {
		if by.Zone == name || name == ReachesGlobal {
			z.Refused = append(z.Refused, RolloutRefused{Zone: name, Reason: by.Reason})
			return
		}
	}
	if l == nil {
		z.Offline = append(z.Offline, RolloutOffline{Zone: name})
		return
	}
	l.mu.Lock()
	connected, since, n := l.connected, l.since, l.lines[key]
	l.mu.Unlock()
	switch {
	case n != nil && n.reached(revision):
		z.Acknowledged++
		if z.reached == nil {
			z.reached = map[string]bool{}
		}
		z.reached[name] = true
	case !connected:
		z.Offline = append(z.Offline, RolloutOffline{Zone: name, Since: since})
	default:
		z.Pending = append(z.Pending, name)
	}
}

func (n *line) reached(revision uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acknowledged >= revision
}

// Rollout tells how far a resource of this server's store has come among the zones.
func (g *Global) Rollout(r *resources.Resource) *Rollout {
	out := NewRollout(r)
	refused := g.Refused(r.Key)
	for _, zone := range g.Reach(r) {
		var l *ledger
		if data := g.data(zone); data != nil {
			l = data.ledger
		}
		out.Zones.add(zone, r.Revision, l, refused, lineKey{GlobalToZone, r.Type})
	}
	return out
}

// Reach lists the zones that r goes to, in order.
func (g *Global) Reach(r *resources.Resource) []string {
	snapshot := g.config.Store.Snapshot()
	here := Place{Enabled: func(zone string) bool { return ZoneEnabled(snapshot, zone) }}
	for zone := range snapshot.List(store.Query{Type: resources.TypeZone}) {
		if takesPart(zone) {
			here.Zones = append(here.Zones, zone.Name)
		}
	}
	return g.crossing.Reach(r, here)
}

// Rollout tells whether a resource of this zone's store has come to the global. A copy of the global's has nowhere to go.
func (z *Zone) Rollout(r *resources.Resource) *Rollout {
	out := NewRollout(r)
	reached := z.crossing.Reach(r, Place{Zone: z.config.Zone, Enabled: func(string) bool { return true }})
	if slices.Contains(reached, ReachesGlobal) {
		out.Zones.add(ReachesGlobal, r.Revision, z.ledger, z.Refused(r.Key), lineKey{ZoneToGlobal, r.Type})
	}
	return out
}
