package kds

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

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
	// Zone is the zone that answers: the proxies are its own, and of other zones it knows nothing. Empty where a global answers.
	Zone string `json:"zone,omitempty"`
	// Source is the global, where this is a copy that comes from there while it is away or not compared yet: whether it has a newer one
	// is not known.
	Source  *RolloutOffline `json:"source,omitempty"`
	Zones   RolloutZones    `json:"zones"`
	Proxies RolloutProxies  `json:"proxies"`
	// NotEnforced says of which parts of a policy no proxy makes anything, and why; empty where all of it takes effect.
	NotEnforced []string `json:"notEnforced,omitempty"`
}

// RolloutZones are the servers that a resource goes to, by what they have said. On a zone it is the global.
type RolloutZones struct {
	Acknowledged int              `json:"acknowledged"`
	Total        int              `json:"total"`
	Offline      []RolloutOffline `json:"offline"`
	Refused      []RolloutRefused `json:"refused"`
	Pending      []string         `json:"pending"`
	// Unknown are servers that refuse more than is remembered of them by name: this one may be among it, whatever they acknowledged.
	Unknown []RolloutRefused `json:"unknown,omitempty"`
	// Away are servers that have acknowledged the revision and are not here now: what their proxies do is not known.
	Away []RolloutOffline `json:"away,omitempty"`
	// Disabled are zones that it would go to if they took part. They are in no other count: their proxies go on with what they had.
	Disabled []string `json:"disabled,omitempty"`

	reached map[string]bool
}

// Has reports whether a server has acknowledged the revision.
func (z *RolloutZones) Has(name string) bool { return z.reached[name] }

// RolloutOffline is a server that is away and has not acknowledged the revision.
type RolloutOffline struct {
	Zone string `json:"zone"`
	// Since is when its last session ended, or, for one that was not seen since this server started, when that was.
	Since time.Time `json:"since,omitzero"`
	// NotSeen: it has not connected since this server started.
	NotSeen bool `json:"notSeen,omitempty"`
	// Comparing: it is connected since then, and what it has was not compared yet with what is here. Only in Rollout.Source.
	Comparing bool `json:"comparing,omitempty"`
}

// RolloutRefused is a server that does not take the resource.
type RolloutRefused struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// RolloutProxies counts the Dataplanes that a policy selects, and those whose proxies have acknowledged what follows from it.
type RolloutProxies struct {
	Enforced int           `json:"enforced"`
	Total    int           `json:"total"`
	Behind   []ProxyBehind `json:"behind"`
	// Unknown are those of which nobody knows what they enforce: a proxy that is away keeps what it had.
	Unknown []ProxyUnknown `json:"unknown,omitempty"`
	// LeftOut counts the proxies that are not in the other counts, because who asks may not read them.
	LeftOut int `json:"leftOut,omitempty"`
}

// ProxyUnknown is a Dataplane of whose proxy it is not known what it enforces.
type ProxyUnknown struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Zone is the Dataplane's, where another server was asked.
	Zone string `json:"zone,omitempty"`
	// Reason is why, Since since when: where nobody was ever seen, since the server that looks for them started; zero where that is
	// not known either.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
}

// NewRollout is that of a stored resource, before anybody was asked.
func NewRollout(r *resources.Resource) *Rollout {
	return &Rollout{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name, KRI: resources.KRIOf(r).String(), Revision: r.Revision, Stored: true,
		Zones:   RolloutZones{Offline: []RolloutOffline{}, Refused: []RolloutRefused{}, Pending: []string{}},
		Proxies: RolloutProxies{Behind: []ProxyBehind{}},
	}
}

// add says how one server stands to a revision; over are the bounds that it has met, started is when this one did.
func (z *RolloutZones) add(name string, revision uint64, l *ledger, refused []RefusedBy, over *overLimits, key lineKey, started time.Time) {
	z.Total++
	for _, by := range refused {
		if by.Zone == name || by.Zone == "" { // the empty one is the global
			z.Refused = append(z.Refused, RolloutRefused{Zone: name, Reason: by.Reason})
			return
		}
	}
	if l == nil {
		z.Offline = append(z.Offline, absent(name, time.Time{}, started))
		return
	}
	l.mu.Lock()
	connected, since, n := l.connected, l.since, l.lines[key]
	l.mu.Unlock()
	unnamed, nameless := over.since(limitRefusals)
	switch {
	case n != nil && n.reached(revision) && nameless:
		z.Unknown = append(z.Unknown, RolloutRefused{Zone: name, Reason: "since " + unnamed.UTC().Format(time.RFC3339) +
			" not all that it refuses is remembered by name"})
	case n != nil && n.reached(revision):
		z.Acknowledged++
		if z.reached == nil {
			z.reached = map[string]bool{}
		}
		z.reached[name] = true
		if !connected {
			z.Away = append(z.Away, absent(name, since, started))
		}
	case !connected:
		z.Offline = append(z.Offline, absent(name, since, started))
	default:
		z.Pending = append(z.Pending, name)
	}
}

// absent returns the other side while it is not connected, and nil while it is.
func (l *ledger) absent(name string, started time.Time) *RolloutOffline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected {
		return nil
	}
	out := absent(name, l.since, started)
	return &out
}

// absent is a server that is not connected, since its session ended or since this server started.
func absent(name string, since, started time.Time) RolloutOffline {
	if since.IsZero() {
		return RolloutOffline{Zone: name, Since: started, NotSeen: true}
	}
	return RolloutOffline{Zone: name, Since: since}
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
	reach := g.Reach(r)
	for _, zone := range g.Meant(r) {
		if !slices.Contains(reach, zone) {
			out.Zones.Disabled = append(out.Zones.Disabled, zone)
			continue
		}
		var l *ledger
		var over *overLimits
		if data := g.data(zone); data != nil {
			l, over = data.ledger, data.over
		}
		out.Zones.add(zone, r.Revision, l, refused, over, lineKey{exchange.GlobalToZone, r.Type}, g.started)
	}
	return out
}

// Reach lists the zones that r goes to, in order.
func (g *Global) Reach(r *resources.Resource) []string {
	snapshot := g.config.Store.Snapshot()
	return g.reach(r, snapshot, func(zone string) bool { return ZoneEnabled(snapshot, zone) })
}

// Meant lists the zones that r would go to if none were disabled, in order: the proxies of a zone that is go on with what they have.
func (g *Global) Meant(r *resources.Resource) []string {
	return g.reach(r, g.config.Store.Snapshot(), func(string) bool { return true })
}

func (g *Global) reach(r *resources.Resource, snapshot store.Snapshot, enabled func(zone string) bool) []string {
	here := exchange.Place{Enabled: enabled}
	for zone := range snapshot.List(store.Query{Type: resources.TypeZone}) {
		if enabled(zone.Name) {
			here.Zones = append(here.Zones, zone.Name)
		}
	}
	return g.crossing.Reach(r, here)
}

// source is the global while it is not known to have no newer copies of a type: it is away, or came back and what it has was not
// compared yet.
func (z *Zone) source(t resources.Type) *RolloutOffline {
	if away := z.ledger.absent(exchange.ReachesGlobal, z.started); away != nil {
		return away
	}
	if z.met.hasWhole(t) {
		return nil
	}
	return &RolloutOffline{Zone: exchange.ReachesGlobal, Since: z.ledger.sessionSince(), Comparing: true}
}

// Rollout reports whether a resource of this zone's store has come to the global. A copy of the global's has nowhere to go; it is known
// to be the newest while the global is here.
func (z *Zone) Rollout(r *resources.Resource) *Rollout {
	out := NewRollout(r)
	if home := (resources.Home{Zone: z.config.Zone}); !home.Owns(r) {
		out.Source = z.source(r.Type)
	}
	reached := z.crossing.Reach(r, exchange.Place{Zone: z.config.Zone, Enabled: func(string) bool { return true }})
	if slices.Contains(reached, exchange.ReachesGlobal) {
		out.Zones.add(exchange.ReachesGlobal, r.Revision, z.ledger, z.Refused(r.Key), z.over, lineKey{exchange.ZoneToGlobal, r.Type}, z.started)
	}
	out.Zones.Away = nil // a global that is away has no proxies
	return out
}
