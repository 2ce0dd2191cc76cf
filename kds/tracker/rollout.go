package tracker

import (
	"iter"
	"maps"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Reached is how far the other zones have applied the current version of a zone's resource, by their reports.
type Reached struct {
	// Stored is set if the global has the same content.
	Stored bool `json:"stored"`
	// Pending are connected zones that have not acknowledged it, Refused those that refuse it, Offline those that are
	// offline and have not acknowledged it.
	Pending []string         `json:"pending,omitempty"`
	Refused []RolloutRefused `json:"refused,omitempty"`
	Offline []RolloutOffline `json:"offline,omitempty"`
	// Behind are zones that have it, with proxies of the mesh that have not acknowledged all that follows from it.
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
	// Zone is the zone that answers: the proxies are its own, and it knows nothing of other zones. Empty if a global
	// answers.
	Zone string `json:"zone,omitempty"`
	// Source, on a replica that etcd does not answer, is etcd: whether the others have a newer one is unknown. In a zone it
	// is the global, for a copy from there, while the global is offline or not compared yet: whether it has a
	// newer one is unknown. So it is while the removal of the copy is held, or while changes wait for the store.
	Source  *RolloutOffline `json:"source,omitempty"`
	Zones   RolloutZones    `json:"zones"`
	Proxies RolloutProxies  `json:"proxies"`
	// NotEnforced lists the parts of a policy that take no effect on any proxy, and why; empty if all take effect.
	NotEnforced []string `json:"notEnforced,omitempty"`
}

// RolloutZones are the servers that a resource goes to, by their answers. On a zone that is the global.
type RolloutZones struct {
	Acknowledged int              `json:"acknowledged"`
	Total        int              `json:"total"`
	Offline      []RolloutOffline `json:"offline"`
	Refused      []RolloutRefused `json:"refused"`
	Pending      []string         `json:"pending"`
	// Unknown are servers with more refusals than are kept by name: this resource may be among them, whatever the
	// servers acknowledged.
	Unknown []RolloutRefused `json:"unknown,omitempty"`
	// Away are servers that have acknowledged the revision and are offline now: what their proxies do is unknown.
	Away []RolloutOffline `json:"away,omitempty"`
	// Disabled are zones that would get it if they took part. No other count includes them: their proxies continue with
	// what they had.
	Disabled []string `json:"disabled,omitempty"`

	reached map[string]bool
}

// Has reports whether a server has acknowledged the revision.
func (z *RolloutZones) Has(name string) bool { return z.reached[name] }

// Acknowledgers returns the servers that have acknowledged the revision, in no order.
func (z *RolloutZones) Acknowledgers() iter.Seq[string] { return maps.Keys(z.reached) }

// RolloutOffline is a server that is offline and has not acknowledged the revision.
type RolloutOffline struct {
	Zone string `json:"zone"`
	// Since is the time when its last session ended, or, for one not seen since this server started, the start.
	Since time.Time `json:"since,omitzero"`
	// NotSeen is set if it has not connected since this server started.
	NotSeen bool `json:"notSeen,omitempty"`
	// Unheard is set if it is unknown whether it is connected: this server has not heard of it since Since.
	Unheard bool `json:"unheard,omitempty"`
	// Reason is why. Only in Rollout.Source.
	Reason string `json:"reason,omitempty"`
	// Comparing is set if it has been connected since then, and its resources have not been compared with those here.
	// Only in Rollout.Source.
	Comparing bool `json:"comparing,omitempty"`
	// Removed is set if the global has the resource no more since then, and its removal is held here. Only in
	// Rollout.Source.
	Removed bool `json:"removed,omitempty"`
	// Waiting is set if it has sent changes of the resource's type that wait since then for the store here, which cannot
	// write. Only in Rollout.Source.
	Waiting bool `json:"waiting,omitempty"`
}

// String says since when the server is offline, or why that is unknown.
func (o RolloutOffline) String() string {
	since := o.Since.UTC().Format(time.RFC3339)
	switch {
	case o.Comparing:
		return o.Zone + " is back since " + since + " and is being compared with what is here"
	case o.Waiting:
		return o.Zone + " sent changes that wait since " + since + ", as the store here cannot write"
	case o.Unheard:
		return o.Zone + " not heard of since " + since
	case o.Since.IsZero():
		return o.Zone + " not seen since the server started"
	case o.NotSeen:
		return o.Zone + " not seen since the server started at " + since
	}
	return o.Zone + " offline since " + since
}

// RolloutRefused is a server that refuses the resource.
type RolloutRefused struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// RolloutProxies counts the Dataplanes that a policy selects, and those whose proxies have acknowledged what follows
// from it.
type RolloutProxies struct {
	Enforced int           `json:"enforced"`
	Total    int           `json:"total"`
	Behind   []ProxyBehind `json:"behind"`
	// Unknown are those whose enforcement is unknown: a proxy that is offline keeps what it had.
	Unknown []ProxyUnknown `json:"unknown,omitempty"`
	// LeftOut counts the proxies that the caller may not read. No other count includes them.
	LeftOut int `json:"leftOut,omitempty"`
}

// ProxyUnknown is a Dataplane for which it is unknown what its proxy enforces.
type ProxyUnknown struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Zone is the Dataplane's zone in another server's answer.
	Zone string `json:"zone,omitempty"`
	// Reason is why, Since since when. For a proxy that was never seen, Since is the start of the server that looks for
	// it; zero if that is unknown too.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
}

// NewRollout returns the rollout of a stored resource, without any answers.
func NewRollout(r *resources.Resource) *Rollout {
	return &Rollout{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name, KRI: resources.KRIOf(r).String(),
		Revision: r.Revision, Stored: true,
		Zones:   RolloutZones{Offline: []RolloutOffline{}, Refused: []RolloutRefused{}, Pending: []string{}},
		Proxies: RolloutProxies{Behind: []ProxyBehind{}},
	}
}

// Add adds the state of one server for a revision; over are the limits that it has met, started is the start of this
// server.
func (z *RolloutZones) Add(name string, revision uint64, l *Ledger, refused []RefusedBy, over *Over, key LineKey,
	started time.Time) {
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
	connected, n, away := l.connected, l.lines[key], absent(name, l.since, started)
	away.Unheard = l.unheard
	l.mu.Unlock()
	unnamed, nameless := over.since(LimitRefusals)
	switch {
	case n != nil && n.Reached(revision) && nameless:
		z.Unknown = append(z.Unknown, RolloutRefused{Zone: name, Reason: "since " + unnamed.UTC().Format(time.RFC3339) +
			" not all that it refuses is remembered by name"})
	case n != nil && n.Reached(revision):
		z.Acknowledged++
		if z.reached == nil {
			z.reached = map[string]bool{}
		}
		z.reached[name] = true
		if !connected {
			z.Away = append(z.Away, away)
		}
	case !connected:
		z.Offline = append(z.Offline, away)
	default:
		z.Pending = append(z.Pending, name)
	}
}

// absent returns a server that is not connected, since its session ended or since this server started.
func absent(name string, since, started time.Time) RolloutOffline {
	if since.IsZero() {
		return RolloutOffline{Zone: name, Since: started, NotSeen: true}
	}
	return RolloutOffline{Zone: name, Since: since}
}
