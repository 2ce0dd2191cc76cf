package kds

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Bookkeeping reports whether a change on the global concerns no type that zones are sent, whatever it says: a zone that
// connects, a claim, an insight. It is a store.ViewConfig.Background. Whatever concerns a type is not bookkeeping.
func Bookkeeping(c store.Change) bool {
	t := c.Key().Type
	if t == resources.TypeZone {
		return takesPart(c.Old) == takesPart(c.New)
	}
	d, ok := resources.LookupStored(t)
	return ok && !d.GlobalToZone && !d.AcrossZones
}

// zoneOf returns the zone whose own resource or claim changed, or "".
func zoneOf(c store.Change) string {
	if key := c.Key(); key.Type == resources.TypeZone || key.Type == resources.TypeZoneClaim {
		return key.Name
	}
	return ""
}

// zoneStreams are the streams to each zone.
type zoneStreams map[string][]watcher

func (z zoneStreams) add(zone string, stream watcher) { z[zone] = append(z[zone], stream) }

func (z zoneStreams) remove(zone string, stream watcher) {
	if z[zone] = slices.DeleteFunc(z[zone], func(w watcher) bool { return w == stream }); len(z[zone]) == 0 {
		delete(z, zone)
	}
}

// notifyOnly tells the streams of the zones that the commits after a revision are about, if all of them are
// bookkeeping. Otherwise, or if they have left the store's window, it tells nobody and returns false.
func (p *pacer) notifyOnly(revision uint64) bool {
	if commits, ok := p.store.Notable(revision); !ok || len(commits) > 0 {
		return false
	}
	commits, ok := p.store.Changes(revision)
	if !ok {
		return false
	}
	for _, stream := range p.about(commits) {
		stream.reconsider()
	}
	return true
}

// about returns the streams of the zones that commits are about.
func (p *pacer) about(commits []*store.Commit) []watcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	var streams []watcher
	for _, c := range commits {
		for _, change := range c.Changes {
			for _, stream := range p.zones[zoneOf(change)] {
				if !slices.Contains(streams, stream) {
					streams = append(streams, stream)
				}
			}
		}
	}
	return streams
}
