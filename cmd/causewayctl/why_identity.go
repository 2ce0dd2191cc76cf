package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// latestAt returns the most recent denial of a client, at inbounds with the section unless it is empty; nil if none.
func latestAt(seen []api.Denial, client, section string) *api.Denial {
	for i := range seen {
		if seen[i].Client == client && (section == "" || sectionOfKRI(seen[i].Inbound) == section) {
			return &seen[i]
		}
	}
	return nil
}

// sectionOfKRI returns the name or port of an inbound, from its KRI.
func sectionOfKRI(inbound string) string { return inbound[strings.LastIndexByte(inbound, '_')+1:] }

// resolveIdentity returns the SPIFFE ID that a person means: hers, or the only one that a name leads to. Known are the
// identities of MeshServices, and the clients that were denied. It never makes one up.
func resolveIdentity(ctx context.Context, client *api.Client, mesh, who string, seen []api.Denial) (string, error) {
	if strings.Contains(who, "://") {
		if _, err := spiffeid.FromString(who); err != nil {
			return "", usagef("CLIENT: %q is not a SPIFFE ID: %w", who, err)
		}
		return who, nil
	}
	d, _ := resources.Lookup(resources.TypeMeshService)
	services, err := listItems(ctx, client, listQuery{descriptor: d, mesh: mesh})
	if err != nil {
		return "", err
	}
	known, named := map[string]bool{}, map[string]bool{}
	for _, it := range services {
		ids, err := identitiesOf(it)
		if err != nil {
			return "", err
		}
		for _, id := range ids {
			known[id] = true
			if it.Name == who || it.displayName() == who {
				named[id] = true
			}
		}
	}
	for _, d := range seen {
		if d.Client != "" {
			known[d.Client] = true
		}
	}
	ends := func(id string) bool { return strings.HasSuffix(id, "/"+who) }
	within := func(id string) bool { return strings.Contains(id, who) }
	for _, found := range [][]string{sorted(named, nil), sorted(known, ends), sorted(known, within)} {
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		return "", usagef("CLIENT: %q may be %s: say which", who, strings.Join(found[:min(len(found), nearestCount)], ", "))
	}
	if len(known) == 0 {
		return "", usagef("CLIENT: no identity is known here: give the whole SPIFFE ID")
	}
	return "", usagef("CLIENT: no known identity contains %q; there are %s", who, strings.Join(nearestTo(who, sorted(known, nil)), ", "))
}

// sorted returns the names that a condition selects; nil selects all.
func sorted(names map[string]bool, selects func(string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return selects != nil && !selects(name) })
}

// identitiesOf returns the SPIFFE IDs of a MeshService.
func identitiesOf(it *item) ([]string, error) {
	var service struct {
		Spec resources.MeshService `json:"spec"`
	}
	if err := json.Unmarshal(it.whole, &service); err != nil {
		return nil, fmt.Errorf("%s: %w", it.KRI, err)
	}
	var ids []string
	for _, id := range service.Spec.Identities {
		if _, err := spiffeid.FromString(id.Value); err == nil { // the other kind is a tag
			ids = append(ids, id.Value)
		}
	}
	return ids, nil
}
