package inspect

import (
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Doubts knows why proxies may do something else than what is stored says.
type Doubts struct {
	// Status is the store with the DataplaneInsights. Required.
	Status store.Reader
	// Absent returns why this server does not know how the proxies of a zone are. Nil on a zone, which knows its own.
	Absent func(zone string) *api.Unknown
	// Lacking returns why proxies of a zone that is there may decide by other permissions than those here. Nil on a zone.
	Lacking func(zone string) []api.Unknown
	// Behind returns why the connected proxy of a Dataplane has not taken all that it was sent, and whether that is so.
	Behind func(dataplane resources.Key, zone string) (reason string, is bool)
	// Away returns since when this zone has no session with its global, and whether it has none. Nil if it needs none.
	Away func() (since time.Time, away bool)
	// Waiting returns since when changes of the global wait for this zone's store, and whether they do. Nil if it needs none.
	Waiting func() (since time.Time, waits bool)
	// Outdated returns since when this global does not hear its store, and whether it does not. Nil on a zone.
	Outdated func() (since time.Time, is bool)
	// Started is the time since which this server knows of proxies.
	Started time.Time
}

// Of implements explain.Options.Doubts.
func (d *Doubts) Of(dataplane resources.Key, zone string) (all []string) {
	all = d.ofGlobal("policies")
	if d.Outdated != nil {
		if since, is := d.Outdated(); is {
			all = append(all, "etcd does not answer this replica since "+at(since)+": whether there are newer policies is unknown")
		}
	}
	if d.Absent != nil {
		if why := d.Absent(zone); why != nil {
			return append(all, fmt.Sprintf("what proxies of %s do now is unknown since %s: %s", zone, at(why.Since), why.Reason))
		}
	}
	if d.Lacking != nil {
		for _, why := range d.Lacking(zone) {
			all = append(all, fmt.Sprintf("what proxies of %s do now is unknown since %s: %s", zone, at(why.Since), why.Reason))
		}
	}
	insight := dataplane
	insight.Type = resources.TypeDataplaneInsight
	open, since := matching.Connected(d.Status.Snapshot().Get(insight))
	switch {
	case open != nil:
		return append(all, d.behind(dataplane, zone)...)
	case since.IsZero():
		return append(all, fmt.Sprintf("no proxy of %s was seen since %s: what one does that runs is unknown", dataplane.Name, at(d.Started)))
	}
	return append(all, fmt.Sprintf("the proxy of %s is not connected since %s: if it runs, it decides by what it had then",
		dataplane.Name, at(since)))
}

// Outdates implements api.Config.Outdated of a zone: why its global may have newer resources than those here.
func (d *Doubts) Outdates(ofGlobal bool) []string {
	if !ofGlobal {
		return nil
	}
	return d.ofGlobal("resources")
}

// ofGlobal returns why the global may have newer things than those here.
func (d *Doubts) ofGlobal(things string) (all []string) {
	if d.Away != nil {
		if since, away := d.Away(); away {
			all = append(all, "the global is away since "+at(since)+": whether it has newer "+things+" is unknown")
		}
	}
	if d.Waiting != nil {
		if since, waits := d.Waiting(); waits {
			all = append(all, "changes of the global wait since "+at(since)+", as the store here cannot write: whether there are newer "+
				things+" among them is unknown")
		}
	}
	return all
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// behind says that a connected proxy may not do yet what is stored.
func (d *Doubts) behind(dataplane resources.Key, zone string) []string {
	if d.Behind == nil {
		return nil
	}
	why, is := d.Behind(dataplane, zone)
	if !is {
		return nil
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return []string{fmt.Sprintf("the proxy of %s has not acknowledged all that it should have%s: until it does, it may decide by what it had before",
		dataplane.Name, why)}
}
