package tracker

import (
	"iter"
	"maps"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Reached is how far the current version of a zone's resource has been applied in the other zones, by their reports.
type Reached struct {
	// Stored: the global has it as it is.
	Stored bool `json:"stored"`
	// Pending are connected zones that have not acknowledged it, Refused those that do not take it, Offline those that are away and have
	// not acknowledged it.
	Pending []string         `json:"pending,omitempty"`
	Refused []RolloutRefused `json:"refused,omitempty"`
	Offline []RolloutOffline `json:"offline,omitempty"`
	// Behind are zones that have it, with proxies of the mesh that have not acknowledged all that follows from what they were sent.
	Behind []string `json:"behind,omitempty"`
}

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

// Acknowledgers are the servers that have acknowledged the revision, in no order.
func (z *RolloutZones) Acknowledgers() iter.Seq[string] { return maps.Keys(z.reached) }

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

// Add says how one server stands to a revision; over are the bounds that it has met, started is when this one did.
func (z *RolloutZones) Add(name string, revision uint64, l *Ledger, refused []RefusedBy, over *Over, key LineKey, started time.Time) {
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
	unnamed, nameless := over.since(LimitRefusals)
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

// absent is a server that is not connected, since its session ended or since this server started.
func absent(name string, since, started time.Time) RolloutOffline {
	if since.IsZero() {
		return RolloutOffline{Zone: name, Since: started, NotSeen: true}
	}
	return RolloutOffline{Zone: name, Since: since}
}
