package model

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var valuePattern = regexp.MustCompile(`(?:requestTimeout":"|"app":"v)(\d+)`)

// valueOf reads the value in a spec; -1 if there is none.
func valueOf(it cluster.Item) int {
	m := valuePattern.FindStringSubmatch(strings.Join(strings.Fields(string(it.Spec)), ""))
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1
	}
	return n
}

// Have lists what a server shows.
func Have(ctx context.Context, api *cluster.API) (map[Place]Seen, error) {
	all := map[Place]Seen{}
	for _, list := range []string{"meshtimeouts", "meshservices"} {
		items, err := api.List(ctx, "/meshes/"+mesh+"/"+list)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			display := it.Labels["kuma.io/display-name"]
			if display == "" {
				display = it.Name
			}
			place := Place{it.Type, it.Namespace, it.Name}
			if _, twice := all[place]; twice {
				return nil, cluster.Final(fmt.Errorf("%v is listed twice", place))
			}
			all[place] = Seen{valueOf(it), display, it.Labels["kuma.io/zone"], it.Labels["kuma.io/origin"],
				it.Labels["k8s.kuma.io/namespace"]}
		}
	}
	return all, nil
}

// Difference names the first few places where got differs from want.
func Difference(got, want map[Place]Seen) string {
	var lines []string
	for place, w := range want {
		if g, ok := got[place]; !ok {
			lines = append(lines, fmt.Sprintf("%v is missing, want %+v", place, w))
		} else if g != w {
			lines = append(lines, fmt.Sprintf("%v is %+v, want %+v", place, g, w))
		}
	}
	for place, g := range got {
		if _, ok := want[place]; !ok {
			lines = append(lines, fmt.Sprintf("%v should not be there: %+v", place, g))
		}
	}
	slices.Sort(lines)
	if len(lines) > 5 {
		lines = append(lines[:5], fmt.Sprintf("and %d more", len(lines)-5))
	}
	return strings.Join(lines, "\n")
}
