package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// sectionOfKRI returns the name or port of an inbound, from its KRI.
func sectionOfKRI(inbound string) string { return inbound[strings.LastIndexByte(inbound, '_')+1:] }

// identities are the SPIFFE IDs that a name can mean.
type identities struct {
	// named are the IDs of the MeshServices with that name, and known those of all MeshServices.
	named, known map[string]bool
	// proxies are the IDs of the Dataplanes with that name, which their zone gives them.
	proxies map[string]bool
	// denied are the IDs of denied clients. These may be anybody who can reach a proxy.
	denied map[string]bool
}

// clientID is the SPIFFE ID found for a name.
type clientID struct {
	id string
	// stranger means that nothing but its denials is known about it, so that the client itself chose its name.
	stranger bool
}

// resolveIdentity returns the SPIFFE ID that a person means: the given one, or the only one that matches a name. It
// never invents one.
func resolveIdentity(ctx context.Context, client *api.Client, mesh, who string, seen []api.Denial) (*clientID, error) {
	if strings.Contains(who, "://") {
		if _, err := spiffeid.FromString(who); err != nil {
			return nil, usagef("CLIENT: %q is not a SPIFFE ID: %w", who, err)
		}
		return &clientID{id: who}, nil
	}
	d, _ := resources.Lookup(resources.TypeMeshService)
	services, err := listItems(ctx, client, listQuery{descriptor: d, mesh: mesh})
	if err != nil {
		return nil, err
	}
	all := identities{named: map[string]bool{}, known: map[string]bool{}, proxies: map[string]bool{}, denied: map[string]bool{}}
	for _, it := range services {
		ids, err := identitiesOf(it)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all.known[id] = true
			if it.Name == who || it.displayName() == who {
				all.named[id] = true
			}
		}
	}
	for _, d := range seen {
		if d.Client != "" {
			all.denied[d.Client] = true
		}
	}
	if len(all.named) == 0 {
		if err := all.addProxies(ctx, client, mesh, who); err != nil {
			return nil, err
		}
	}
	return all.find(who)
}

// maxProxies bounds the Dataplanes of one name that are asked for their identity.
const maxProxies = 10

// addProxies adds the identities of the Dataplanes with a name: a client has one before anything denies it.
func (all *identities) addProxies(ctx context.Context, client *api.Client, mesh, who string) error {
	d, _ := resources.Lookup(resources.TypeDataplane)
	dataplanes, err := listItems(ctx, client, listQuery{descriptor: d, mesh: mesh})
	if err != nil {
		return err
	}
	dataplanes = slices.DeleteFunc(dataplanes, func(it *item) bool { return it.Name != who && it.displayName() != who })
	for _, it := range dataplanes[:min(len(dataplanes), maxProxies)] {
		var layout struct {
			SpiffeID string `json:"spiffeId"`
		}
		switch err := fetch(ctx, client, it.key(), "/_layout", &layout); {
		case api.IsNotFound(err): // deleted meanwhile
		case err != nil:
			return aboutResource(it.key(), err)
		case layout.SpiffeID != "":
			all.proxies[layout.SpiffeID] = true
		}
	}
	return nil
}

// find returns the only identity that matches a name. Those of MeshServices and Dataplanes come first, however well the
// name matches a denied client.
func (all *identities) find(who string) (*clientID, error) {
	ends := func(id string) bool { return strings.HasSuffix(id, "/"+who) }
	within := func(id string) bool { return strings.Contains(id, who) }
	for _, of := range []struct {
		ids      map[string]bool
		selects  func(string) bool
		stranger bool
	}{{all.named, nil, false}, {all.proxies, nil, false}, {all.known, ends, false}, {all.known, within, false}, {all.denied, ends, true}, {all.denied, within, true}} {
		found := sorted(of.ids, of.selects)
		switch len(found) {
		case 0:
			continue
		case 1:
			return &clientID{found[0], of.stranger}, nil
		}
		return nil, usagef("CLIENT: %q may be %s: say which", who, strings.Join(found[:min(len(found), nearestCount)], ", "))
	}
	every := maps.Clone(all.known)
	maps.Copy(every, all.denied)
	if len(every) == 0 {
		return nil, usagef("CLIENT: no MeshService here has an identity, no Dataplane has that name, and no denial is known: give the whole SPIFFE ID; " +
			"a global reads the denials of the zone that --zone names")
	}
	return nil, usagef("CLIENT: no known identity contains %q; there are %s", who, strings.Join(nearestTo(who, sorted(every, nil)), ", "))
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
		if _, err := spiffeid.FromString(id.Value); err == nil { // the other kind of identity is a tag
			ids = append(ids, id.Value)
		}
	}
	return ids, nil
}
