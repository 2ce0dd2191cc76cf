package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// minMass is the number of deletions up to which a comparison never holds them.
const minMass = 10

// compareAll removes resources whose objects do not exist, for kinds with a complete list, once all kinds were listed
// and the feed is done. A list that arrives meanwhile is compared the next time.
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

// compare removes the resources of one kind whose objects do not exist.
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
	b.Log.Info("objects have disappeared", "type", k.Type, "gone", len(missing), "before", total)
	if len(missing) > minMass && 2*len(missing) > total {
		b.mu.Lock()
		for _, d := range missing {
			b.holdLocked(d, heldMass, fmt.Sprintf("%d of %d objects disappeared at once while the server did not watch", len(missing), total))
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

// isOf reports whether a resource comes from an object, in its current form or from before it became invalid. After a
// restart only the store knows the latter.
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
