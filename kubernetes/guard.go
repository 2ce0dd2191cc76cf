package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
)

// AnnotationAcceptDeletions on a CustomResourceDefinition lets the deletions of its kind that are held happen. The server
// removes it once they have.
const AnnotationAcceptDeletions = "causeway.io/accept-deletions"

// Why a deletion is held.
const (
	heldDefinition = "DefinitionGone"
	heldMass       = "MassDeletion"
	heldInUse      = "InUse"
)

// minMass is the number of deletions up to which a comparison never holds them.
const minMass = 10

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

// definition is what the API server says of a kind.
type definition struct {
	created time.Time
	gone    string // why its objects are gone together with it; empty if they are not
	// said means that it has an operator's word; accepted, that the word is not used up.
	said, accepted bool
}

func (b *Bridge) definition(ctx context.Context, k Kind) (*definition, error) {
	o, err := b.Client.Get(ctx, definitions, apiserver.Name{Name: k.Plural + "." + k.Group})
	switch {
	case apiserver.IsNotFound(err):
		return &definition{gone: "its CustomResourceDefinition is gone"}, nil
	case err != nil:
		return nil, err
	case o.Meta.DeletionTimestamp != nil:
		return &definition{gone: "its CustomResourceDefinition is being deleted"}, nil
	}
	_, said := o.Meta.Annotations[AnnotationAcceptDeletions]
	return &definition{created: o.Meta.CreationTimestamp, said: said, accepted: said && !b.isSpent(k.Type)}, nil
}

// isSpent reports whether the operator's word for a kind was carried out, and only waits to be removed.
func (b *Bridge) isSpent(t resources.Type) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[t].spent
}

func (b *Bridge) setSpent(k *kindState, spent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k.spent = spent
}

// permitted returns the deletions that users meant. An object that went with its CustomResourceDefinition was not deleted
// by a user of the mesh. Deletions that cannot be judged now are put back.
//
// unseen is set for objects that went while the server did not watch.
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
			b.hold(d, heldMass, "an operator accepts it") // and their word is used up with it: see retryKind
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

// delay lets the next look at held deletions judge one.
func (b *Bridge) delay(d api.FeedDelete) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delayLocked(d)
}

func (b *Bridge) delayLocked(d api.FeedDelete) {
	b.kinds[d.Key.Type].held[d.Key] = &heldDelete{uid: d.UID, since: b.Now()}
}

// lost returns why the object of a deletion was lost rather than deleted; empty if it was deleted. An object that is older
// than its definition was in another one of the same name, and went with that. Of what went unseen this is as likely for
// one that was made in the same second: the API server knows no less.
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

// compareAll removes what the store has of objects that are not there, for kinds with a complete list, once all kinds
// were listed and the feed has come to the end. A list that comes meanwhile is compared the next time.
func (b *Bridge) compareAll(ctx context.Context) {
	for _, t := range slices.Sorted(maps.Keys(b.kinds)) {
		k := b.kinds[t]
		b.mu.Lock()
		if !b.completeLocked() {
			b.mu.Unlock()
			return
		}
		wanted := k.compare && k.listed && !k.absent
		k.compare = k.compare && !wanted
		b.mu.Unlock()
		if wanted {
			b.compare(ctx, k)
		}
	}
}

// compare removes the resources of one kind whose objects are not there.
func (b *Bridge) compare(ctx context.Context, k *kindState) {
	var missing []api.FeedDelete
	there := b.users(k)
	total := 0
	for r := range b.Store.Snapshot().List(store.Query{Type: k.Type}) {
		if r.Object.IsZero() || !b.Home.Owns(r) {
			continue
		}
		total++
		if !b.isOf(r, there[r.Object.UID]) {
			missing = append(missing, api.FeedDelete{Key: r.Key, UID: r.Object.UID})
		}
	}
	if len(missing) == 0 {
		return
	}
	b.Log.Info("objects are gone that were there before", "type", k.Type, "gone", len(missing), "before", total)
	if len(missing) > minMass && 2*len(missing) > total {
		b.mu.Lock()
		for _, d := range missing {
			b.holdLocked(d, heldMass, fmt.Sprintf("%d of %d objects are gone at once, while the server did not watch", len(missing), total))
		}
		b.mu.Unlock()
		return
	}
	b.remove(ctx, b.permitted(ctx, missing, true))
}

// users returns the names of the users' objects of a kind, by UID.
func (b *Bridge) users(k *kindState) map[string]apiserver.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]apiserver.Name, len(k.objects))
	for name, o := range k.objects {
		if !o.copy {
			out[o.uid] = name
		}
	}
	return out
}

// isOf reports whether a resource is what an object says, or said before it became invalid. After a restart the store is
// all that knows of the latter.
func (b *Bridge) isOf(r *resources.Resource, name apiserver.Name) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.kinds[r.Type].objects[name]
	if o == nil || o.uid != r.Object.UID {
		return false
	}
	if o.key == (resources.Key{}) {
		o.key = r.Key
		b.dueLocked(objectID{r.Type, name}, 0)
	}
	return o.key == r.Key
}

// remove removes resources whose objects are gone.
func (b *Bridge) remove(ctx context.Context, deletes []api.FeedDelete) {
	if len(deletes) == 0 {
		return
	}
	f := api.Feed{Deletes: deletes}
	result, err := b.Routes.Feed(ctx, f)
	if err != nil {
		b.Log.Error("what is gone in Kubernetes cannot be removed; trying again", "error", err)
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

// heldInterval is how often held deletions are looked at again.
const heldInterval = 4 * time.Second

// retryHeld removes what was held and need not be any longer: because an operator accepts it, or what used it is gone.
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
		return // the API server is away: what is held stays
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
		b.setSpent(k, false) // the next word is another one
	}
}

// holds reports whether a deletion is held that an operator's word lets happen: one that could not be stored is still to
// come.
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

// clearAcceptance removes the operator's word once it is carried out, so that it says nothing about later deletions, and
// reports whether it is gone.
func (b *Bridge) clearAcceptance(ctx context.Context, k *kindState) bool {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{AnnotationAcceptDeletions: nil}}})
	if err == nil {
		_, err = b.Client.Patch(ctx, definitions, apiserver.Name{Name: k.Plural + "." + k.Group}, "", patch)
	}
	if err != nil {
		b.Log.Warn("the annotation that accepts deletions cannot be removed; it counts no more, trying again", "type", k.Type,
			"error", err)
	}
	return err == nil
}

// Are implements api.Objects.
func (b *Bridge) Are(t resources.Type) bool { return Fed(t) }

// Gone reports whether the object of a resource is gone, and the store keeps the resource.
func (b *Bridge) Gone(key resources.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[key.Type]
	return k != nil && k.held[key] != nil
}
