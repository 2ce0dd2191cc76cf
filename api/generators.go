package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// EnsureDefaults creates what a new server starts with: the default mesh and the default HostnameGenerators.
func EnsureDefaults(ctx context.Context, s store.Store, home resources.Home) error {
	return errors.Join(EnsureDefaultMesh(ctx, s, home), ensureDefaultGenerators(ctx, s, home))
}

// ensureDefaultGenerators creates the default HostnameGenerators if the store has none of this server's own. Users who
// want none keep one that selects nothing.
func ensureDefaultGenerators(ctx context.Context, s store.Store, home resources.Home) error {
	for r := range s.Snapshot().List(store.Query{Type: resources.TypeHostnameGenerator}) {
		if home.Owns(r) {
			return nil
		}
	}
	defaults := resources.DefaultHostnameGenerators(home)
	var batch store.Batch
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		raw, err := json.Marshal(defaults[name])
		if err != nil {
			return err
		}
		spec, err := resources.NewSpec(resources.TypeHostnameGenerator, raw)
		if err != nil {
			return err
		}
		r := home.Labelled(&resources.Resource{Spec: spec,
			Key: resources.Key{Type: resources.TypeHostnameGenerator, Name: name}})
		batch.Ops = append(batch.Ops, store.Op{Put: r, If: store.IfAbsent()})
	}
	_, err := s.Apply(ctx, batch)
	if errors.Is(err, store.ErrConflict) { // another server with the same store did
		return nil
	}
	return err
}
