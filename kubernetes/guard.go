package kubernetes

import (
	"context"
	"maps"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// Why a deletion is held.
const (
	heldDefinition = "DefinitionGone"
	heldMass       = "MassDeletion"
	heldInUse      = "InUse"
)

// heldDelete is a resource that the store keeps although its object is gone.
type heldDelete struct {
	uid, reason, message string
	since                time.Time
}

func (b *Bridge) hold(d api.FeedDelete, reason, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holdLocked(d, reason, message)
}

func (b *Bridge) holdLocked(d api.FeedDelete, reason, message string) {
	k := b.kinds[d.Key.Type]
	if old := k.held[d.Key]; old != nil && old.uid == d.UID && old.reason == reason {
		return
	}
	k.held[d.Key] = &heldDelete{uid: d.UID, reason: reason, message: message, since: b.Now()}
	b.Log.Warn("a deletion is held", "type", d.Key.Type, "mesh", d.Key.Mesh, "namespace", d.Key.Namespace, "name", d.Key.Name,
		"reason", reason, "message", message)
}

// permitted returns the deletions that users intended. An object that disappeared with its CustomResourceDefinition was
// not deleted by a user of the mesh. Deletions that cannot be judged now are put back.
//
// unseen is set for objects that disappeared while the server did not watch.
func (b *Bridge) permitted(ctx context.Context, deletes []api.FeedDelete, unseen bool) []api.FeedDelete {
	var out []api.FeedDelete
	known := map[resources.Type]*definition{}
	for _, d := range deletes {
		t := d.Key.Type
		if known[t] == nil {
			definition, err := b.definition(ctx, b.kinds[t].Kind)
			if err != nil {
				b.Log.Warn("deletions wait: the CustomResourceDefinition cannot be read", "type", t, "error", err)
				b.delay(d)
				continue
			}
			known[t] = definition
		}
		why := b.lost(d, known[t], unseen)
		if known[t].accepted && known[t].gone == "" {
			b.hold(d, heldMass, "an operator accepts it") // and this uses up the acceptance: see retryKind
			continue
		}
		if why != "" {
			b.hold(d, heldDefinition, why)
			continue
		}
		out = append(out, d)
	}
	return out
}

// delay leaves a deletion to the next check of held deletions.
func (b *Bridge) delay(d api.FeedDelete) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delayLocked(d)
}

func (b *Bridge) delayLocked(d api.FeedDelete) {
	b.kinds[d.Key.Type].held[d.Key] = &heldDelete{uid: d.UID, since: b.Now()}
}

// lost returns why the object of a deletion was lost rather than deleted; empty if it was deleted. An object that is
// older than its definition belonged to an earlier one of the same name, and disappeared with it. For an unseen
// deletion this is also assumed for an object created in the same second, because timestamps are no finer.
func (b *Bridge) lost(d api.FeedDelete, is *definition, unseen bool) string {
	if is.gone != "" || is.accepted {
		return is.gone
	}
	old := b.Store.Snapshot().Get(d.Key)
	if old != nil && (old.CreationTime.Before(is.created) || unseen && old.CreationTime.Equal(is.created)) {
		return "its CustomResourceDefinition was deleted and created again"
	}
	return ""
}

// remove removes resources whose objects are gone.
func (b *Bridge) remove(ctx context.Context, deletes []api.FeedDelete) {
	if len(deletes) == 0 {
		return
	}
	f := api.Feed{Deletes: deletes}
	result, err := b.Routes.Feed(ctx, f)
	if err != nil {
		b.Log.Error("cannot remove resources whose Kubernetes objects are gone; trying again", "error", err)
		for _, d := range deletes {
			b.delay(d)
		}
		return
	}
	b.mu.Lock()
	for _, d := range deletes {
		if result.Refused[d.Key] == nil {
			delete(b.kinds[d.Key.Type].held, d.Key)
		}
	}
	b.mu.Unlock()
	b.settle(nil, &f, result)
}

// heldInterval is how often held deletions are checked again.
const heldInterval = 4 * time.Second

// retryHeld removes held resources that need not be held any longer: an operator accepted the deletion, or nothing uses
// the resource any more.
func (b *Bridge) retryHeld(ctx context.Context) {
	b.mu.Lock()
	if b.Now().Sub(b.lastHeld) < heldInterval {
		b.mu.Unlock()
		return
	}
	b.lastHeld = b.Now()
	held := map[*kindState]map[resources.Key]*heldDelete{}
	for _, k := range b.kinds {
		if len(k.held) > 0 || k.spent {
			held[k] = maps.Clone(k.held)
		}
	}
	b.mu.Unlock()
	for k, deletes := range held {
		b.retryKind(ctx, k, deletes)
	}
}

func (b *Bridge) retryKind(ctx context.Context, k *kindState, held map[resources.Key]*heldDelete) {
	is, err := b.definition(ctx, k.Kind)
	if err != nil {
		return // the API server is unreachable: held deletions stay
	}
	var now []api.FeedDelete
	for key, one := range held {
		d := api.FeedDelete{Key: key, UID: one.uid}
		why := b.lost(d, is, true)
		old := b.Store.Snapshot().Get(key)
		switch {
		case old == nil || old.Object.UID != one.uid:
			b.mu.Lock()
			delete(k.held, key)
			b.mu.Unlock()
		case is.accepted || one.reason == heldInUse || one.reason == "" && why == "":
			now = append(now, d)
		case one.reason == "":
			b.hold(d, heldDefinition, why)
		}
	}
	b.remove(ctx, now)
	switch {
	case is.accepted && !b.holds(k), is.said && !is.accepted:
		b.setSpent(k, !b.clearAcceptance(ctx, k))
	case !is.said:
		b.setSpent(k, false) // the next acceptance is a new one
	}
}

// holds reports whether a deletion is held that an operator's acceptance covers and that could not be stored yet.
func (b *Bridge) holds(k *kindState) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range k.held {
		if one.reason != heldInUse {
			return true
		}
	}
	return false
}

// Are implements api.Objects.
func (b *Bridge) Are(t resources.Type) bool { return Fed(t) }

// Gone reports whether the object of a resource is gone while the store keeps the resource.
func (b *Bridge) Gone(key resources.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[key.Type]
	return k != nil && k.held[key] != nil
}
