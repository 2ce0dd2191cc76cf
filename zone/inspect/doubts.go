package inspect

import (
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Doubts reports why proxies may not do what the stored resources say.
type Doubts struct {
	// Status is the store with the DataplaneInsights. Required.
	Status store.Reader
	// Absent returns why this server does not know the state of a zone's proxies. Nil on a zone, which knows its own.
	Absent func(zone string) *api.Unknown
	// Lacking returns why the proxies of a connected zone may use other permissions than the ones here. Nil on a zone.
	Lacking func(zone string) []api.Unknown
	// Behind reports whether the connected proxy of a Dataplane has not accepted everything that it was sent, and why.
	Behind func(dataplane resources.Key, zone string) (reason string, is bool)
	// Away reports whether this zone has no session with its global, and since when. Nil if it needs none.
	Away func() (since time.Time, away bool)
	// Waiting reports whether changes of the global wait for this zone's store, and since when. Nil if it needs none.
	Waiting func() (since time.Time, waits bool)
	// Comparing lists the types, of all or of one that is named, whose whole list the connected global has not sent in its
	// session, and since when that is. Nil if it needs none.
	Comparing func(of resources.Type) (since time.Time, types []resources.Type)
	// Outdated reports whether this global cannot reach its store, and since when. Nil on a zone.
	Outdated func() (since time.Time, is bool)
	// Started is the time from which this server knows about proxies.
	Started time.Time
}

// Of implements explain.Options.Doubts.
func (d *Doubts) Of(dataplane resources.Key, zone string) (all []string) {
	all = d.ofGlobal("policies", "")
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

// Outdates implements api.Config.Outdated for a zone: why its global may have newer resources than the ones here.
func (d *Doubts) Outdates(ofGlobal bool, of resources.Type) []string {
	if !ofGlobal {
		return nil
	}
	return d.ofGlobal("resources", of)
}

// ofGlobal returns why the global may have newer resources of a type, or any, than the ones here.
func (d *Doubts) ofGlobal(things string, of resources.Type) (all []string) {
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
	if since, why := d.Incomplete(of); why != "" {
		all = append(all, why+" since "+at(since)+": whether it has newer "+things+" is unknown")
	}
	return all
}

// Incomplete says of which types the connected global has not sent all, and since when; empty if it has. It looks at one
// type, or at all if of is empty.
func (d *Doubts) Incomplete(of resources.Type) (since time.Time, why string) {
	if d.Comparing == nil {
		return time.Time{}, ""
	}
	since, types := d.Comparing(of)
	if len(types) == 0 {
		return time.Time{}, ""
	}
	if len(types) == 1 {
		return since, "the global is connected and has not sent its whole list of " + string(types[0])
	}
	return since, fmt.Sprintf("the global is connected and has not sent its whole lists of %d types, %s among them", len(types), types[0])
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// behind reports that a connected proxy may not use the stored policies yet.
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
