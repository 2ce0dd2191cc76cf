package matching

import (
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// PoliciesAfter returns policies and their index after those of some keys may have changed, with what came and what went.
// get returns the resource of a key now; nil if it is gone. The arguments stay as they are, and are returned if nothing
// has changed.
func PoliciesAfter(policies map[resources.Key]*Policy, index *Index, keys map[resources.Key]bool,
	get func(resources.Key) *resources.Resource, systemNamespace string,
) (next map[resources.Key]*Policy, nextIndex *Index, added, gone []*Policy) {
	for key := range keys {
		r, old := get(key), policies[key]
		if old != nil && old.Resource == r {
			continue
		}
		if old != nil {
			gone = append(gone, old)
		}
		if r != nil {
			added = append(added, NewPolicy(r, systemNamespace))
		}
	}
	if len(added)+len(gone) == 0 {
		return policies, index, nil, nil
	}
	next = maps.Clone(policies)
	for _, p := range gone {
		delete(next, p.Resource.Key)
	}
	for _, p := range added {
		next[p.Resource.Key] = p
	}
	nextIndex, ok := index.With(added, gone)
	if !ok {
		nextIndex = NewIndex(slices.Collect(maps.Values(next)))
	}
	return next, nextIndex, added, gone
}
