package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// agree repairs the links and waits until every server has the state that the model predicts.
func (p *play) agree() {
	p.t.Helper()
	for _, l := range p.links {
		l.Set(cluster.Weather{})
	}
	p.agreeAsItIs()
}

// agreeAsItIs is agree with the links unchanged. It accepts held deletions, as an informed operator would. The
// comparison then shows whether they were right.
func (p *play) agreeAsItIs() {
	p.t.Helper()
	start, asked := time.Now(), false
	for _, at := range slices.Sorted(maps.Keys(p.servers)) {
		want := p.world.At(at)
		p.must(cluster.Until(p.t.Context(), patience, p.servers[at].Name()+" to have what the model says",
			func(ctx context.Context) error {
				got, err := p.have(ctx, at)
				if err != nil {
					return err
				}
				diff := difference(got, want)
				if diff == "" {
					return nil
				}
				if !asked && time.Since(start) > operatorComes {
					asked = true
					p.acceptDeletes(ctx)
				}
				return fmt.Errorf("%s", diff)
			}))
	}
}

// acceptDeletes accepts the held deletions on both sides of each link.
func (p *play) acceptDeletes(ctx context.Context) {
	p.t.Helper()
	for _, zone := range p.zones {
		for _, at := range []string{Global, zone} {
			var accepted struct {
				Types []json.RawMessage `json:"types"`
			}
			err := p.servers[at].API.Do(ctx, http.MethodPost, "/zones/"+zone+"/_accept-deletes", map[string]any{}, &accepted)
			if err != nil {
				p.t.Errorf("accept deletions of %s: %v", zone, err)
			}
			p.faults["held"] += len(accepted.Types)
		}
	}
}

// have lists the resources of a server.
func (p *play) have(ctx context.Context, at string) (map[Place]Seen, error) {
	all := map[Place]Seen{}
	for _, list := range []string{"meshtimeouts", "meshservices"} {
		items, err := p.servers[at].API.List(ctx, "/meshes/"+mesh+"/"+list)
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

// difference names the first few places where got differs from want.
func difference(got, want map[Place]Seen) string {
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
