package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

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
				got, err := Have(ctx, p.servers[at].API)
				if err != nil {
					return err
				}
				diff := Difference(got, want)
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
	p.crowdAgrees()
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
