package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// unknownName reports that the server does not know a name.
type unknownName struct {
	err error
	key resources.Key
}

func (e *unknownName) Error() string { return e.err.Error() }
func (e *unknownName) Unwrap() error { return e.err }

// unknown marks err as reporting that nothing exists under key.
func unknown(key resources.Key, err error) error { return &unknownName{err, key} }

// unknownZone returns the error for a zone that the server does not know.
func unknownZone(zone string, err error) error {
	return unknown(resources.Key{Type: resources.TypeZone, Name: zone},
		&advised{fmt.Errorf("the server has no zone %s: %w", zone, err),
			"causewayctl get zones, asked of the global, lists them"})
}

// knownZone returns an error if the server knows that there is no such zone.
func knownZone(ctx context.Context, client *api.Client, zone string) error {
	_, err := fetchItem(ctx, client, resources.Key{Type: resources.TypeZone, Name: zone})
	if missing := (*unknownName)(nil); errors.As(err, &missing) {
		return err
	}
	return nil
}

// withNearest turns an error about a name that the server does not know into one with exitUsage. It adds the nearest
// known names, unless the server has named them.
func withNearest(ctx context.Context, client *api.Client, err error) error {
	missing := &unknownName{}
	var answer *api.Error
	if api.IsElsewhere(err) && errors.As(err, &answer) {
		said := errors.New("unknown here: " + answer.Detail)
		if a := (*advised)(nil); errors.As(err, &a) {
			said = &advised{said, a.advice}
		}
		return &failedError{err: said, status: exitNoAnswer}
	}
	if !errors.As(err, &missing) && !api.IsNotFound(err) {
		return err
	}
	advice := ""
	if errors.As(err, &answer) {
		advice = nearestIn(answer)
	}
	if a := (*advised)(nil); advice == "" && errors.As(err, &a) {
		advice = a.advice
	}
	said := strings.HasPrefix(advice, "the nearest here: ") || strings.HasPrefix(advice, "here is ")
	if !said {
		if names := nearestNames(ctx, client, missing.key); len(names) > 0 {
			advice = strings.TrimSpace("the nearest here: " + strings.Join(names, ", ") + "\n  " + advice)
		}
	}
	if err = (plain{err}); advice != "" {
		err = &advised{err, advice}
	}
	return &failedError{err: err, status: exitUsage}
}

// askGlobal reports that a zone was asked for something that only a global knows.
func askGlobal(what string) error {
	return &failedError{err: fmt.Errorf("a zone does not know %s: ask a global", what), status: exitNoAnswer}
}

// plain is an error without what it wraps, because its advice is already in the text.
type plain struct{ err error }

func (e plain) Error() string { return e.err.Error() }

// nearestCount is the number of suggested names.
const nearestCount = 3

// nearestNames returns known names of the same type, the most similar first. If the mesh does not exist, it returns
// names of meshes. It suggests nothing that cannot be listed.
func nearestNames(ctx context.Context, client *api.Client, key resources.Key) []string {
	d, ok := resources.Lookup(key.Type)
	if !ok || key.Name == "" {
		return nil
	}
	items, err := listItems(ctx, client, listQuery{descriptor: d, mesh: key.Mesh})
	if api.IsNotFound(err) && key.Mesh != "" {
		var names []string
		for _, name := range nearestNames(ctx, client, resources.Key{Type: resources.TypeMesh, Name: key.Mesh}) {
			names = append(names, "mesh "+name) // a line already
		}
		return names
	}
	if err != nil {
		return nil
	}
	var names []string
	for _, it := range items {
		names = append(names, printing.Line(place(it.key())))
	}
	return nearestTo(key.Name, names)
}

// nearestTo returns a few of the names, the most similar to name first. It sorts names.
func nearestTo(name string, names []string) []string {
	distance := func(other string) int { return distanceOf(other[strings.LastIndex(other, "/")+1:], name) }
	slices.SortStableFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	return names[:min(len(names), nearestCount)]
}

// distanceOf returns the edit distance of a and b: how many letters to change, insert or delete.
func distanceOf(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
