package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// showTimeouts calls backend where it answers after 2 s. Its producer limits clients of all zones to 1 s, and a
// consumer gives those of its own namespace longer.
func (m *mesh) showTimeouts(ctx context.Context) ([]row, error) {
	const slow = "slow"
	producer, consumers := applied{"producer-timeout.yaml", zone1}, applied{"consumer-timeout.yaml", zone1}
	steps := []struct {
		add   applied
		calls []call
		want  int
	}{
		{applied{frontendsMay, zone1}, []call{{from: frontend, path: slow}, {from: frontend3, path: slow}}, http.StatusOK},
		{producer, []call{{from: frontend, path: slow}, {from: frontend3, path: slow}, {from: consumer, path: slow}}, http.StatusGatewayTimeout},
		{consumers, []call{{from: consumer, path: slow}}, http.StatusOK},
		{add: applied{}, calls: []call{{from: frontend, path: slow}}, want: http.StatusGatewayTimeout},
	}
	var rows []row
	for _, s := range steps {
		if s.add.file != "" {
			programmed, err := m.write(ctx, s.add)
			if err != nil {
				return rows, err
			}
			for _, r := range programmed {
				r.title = "timeouts"
				rows = append(rows, r)
			}
		}
		for _, c := range s.calls {
			r := row{title: "timeouts", what: c.from + " calls " + backend1 + ", which takes 2 s", want: fmt.Sprint(s.want)}
			_ = cluster.Until(ctx, patience, r.what, func(ctx context.Context) error {
				status, err := m.status(ctx, c)
				if r.got = fmt.Sprint(status); err == nil && status != s.want {
					err = fmt.Errorf("it is answered with %d", status)
				}
				return err
			})
			rows = append(rows, r)
		}
	}
	for i := range steps {
		if a := steps[len(steps)-1-i].add; a.file != "" {
			if err := m.remove(ctx, a); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}
