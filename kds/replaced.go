package kds

import (
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// replacedFor is how long a replacement is reported: still the morning after.
const replacedFor = 72 * time.Hour

// replaces records the wire names of copies whose content the strange store replaced.
func (a *peerStore) replaces(t resources.Type, names []string) {
	if len(names) == 0 {
		return
	}
	defer a.pulse.Beat()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.replaced == nil {
		a.replaced = &tracker.Replaced{Since: a.now()}
	}
	a.replaced.Count += len(names)
	a.replaced.Names = append(a.replaced.Names, names[:min(len(names), tracker.MaxHeldNames-len(a.replaced.Names))]...)
	a.log.Warn("the store of the "+a.peer()+" is not the one that this "+a.here()+
		" knew, and has other content of resources here: that content, which may be older, replaced ours",
		"type", string(t), "replaced", len(names), "first", strings.Join(names[:min(len(names), tracker.MaxHeldNames)], " "))
}

// replacement returns what was replaced, for status; nil if nothing was, or too long ago.
func (a *peerStore) replacement() *tracker.Replaced {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.replaced == nil || a.now().Sub(a.replaced.Since) > replacedFor {
		return nil
	}
	out := *a.replaced
	out.Names = slices.Clone(out.Names)
	return &out
}
