package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// isKRI reports whether an argument is meant as a KRI. Names of types and resources have no underscore.
func isKRI(arg string) bool { return strings.HasPrefix(arg, "kri_") }

// fetchKRI reads the resource that a KRI names, whatever its zone and its name on the server.
func fetchKRI(ctx context.Context, client *api.Client, arg string) (*item, error) {
	if _, err := resources.ParseKRI(arg); err != nil {
		return nil, usagef("%w", err)
	}
	it := &item{}
	err := client.JSON(ctx, api.Request{Path: "/_kri/" + url.PathEscape(arg)}, it)
	if answer := (*api.Error)(nil); errors.As(err, &answer) && api.IsNotFound(err) && !api.IsElsewhere(err) {
		advice := cmp.Or(nearestIn(answer), "the server may not have it yet, or --address may name another server")
		return nil, unknown(keyOfKRI(arg), &advised{fmt.Errorf("there is no %s", arg), advice})
	}
	return it, err
}

// namedDataplane returns the key of the Dataplane that an argument names: a name in a scope, or a KRI.
func namedDataplane(ctx context.Context, client *api.Client, scope *scopeFlags, arg string) (resources.Key, error) {
	if !isKRI(arg) {
		return resources.Key{Type: resources.TypeDataplane, Mesh: scope.mesh, Namespace: scope.namespace, Name: arg}, nil
	}
	it, err := fetchKRI(ctx, client, arg)
	if err != nil {
		return resources.Key{}, err
	}
	if it.Type != resources.TypeDataplane {
		return resources.Key{}, usagef("%s names a %s, want a Dataplane", arg, it.Type)
	}
	return it.key(), nil
}

// keyOfKRI returns the key that the resource of a KRI has on its origin.
func keyOfKRI(text string) resources.Key {
	kri, err := resources.ParseKRI(text)
	if err != nil {
		return resources.Key{}
	}
	d, ok := resources.LookupShort(kri.Short)
	if !ok {
		return resources.Key{}
	}
	return resources.Key{Type: d.Type, Mesh: kri.Mesh, Namespace: kri.Namespace, Name: kri.Name}
}
