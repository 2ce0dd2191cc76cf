package main

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// settleTimeout is how long the expected decision may take after a change.
const settleTimeout = 10 * time.Second

// row is a line of the table.
type row struct {
	story, who, called, want, got, by string
	ok                                bool
}

func rowOf(title string, c call, got cluster.Verdict, ok bool) row {
	return row{
		story: title, who: c.client, called: c.to + " " + c.inbound, ok: ok,
		want: c.want.word(), got: outcome{allowed: got.Allowed()}.word(), by: got.DecidedBy,
	}
}

func (o outcome) word() string {
	if o.allowed {
		return "allowed"
	}
	return "denied"
}

// tell plays one story and returns its rows. A row shows the expected decision if the Envoy reached it, or the last one
// before the time was over.
func (m *mesh) tell(ctx context.Context, s story) ([]row, error) {
	for _, a := range s.applied {
		if err := m.apply(ctx, a); err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, c := range s.calls {
		got, ok := m.settle(ctx, c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rows = append(rows, rowOf(s.title, c, got, ok))
	}
	for i := range s.applied {
		if err := m.remove(ctx, s.applied[len(s.applied)-1-i]); err != nil {
			return rows, err
		}
	}
	return rows, m.forget(ctx, s)
}

// settle calls until the outcome is the expected one.
func (m *mesh) settle(ctx context.Context, c call) (cluster.Verdict, bool) {
	var got cluster.Verdict
	err := cluster.Until(ctx, settleTimeout, c.client+" calling "+c.to, func(ctx context.Context) error {
		v, err := m.workloads[c.to].Judge(ctx, m.clients[c.client], c.inbound, "/")
		if err != nil {
			return err
		}
		got = v
		if v.Allowed() != c.want.allowed || v.DecidedBy != c.want.by {
			return fmt.Errorf("%s", v)
		}
		return nil
	})
	if err != nil && got == (cluster.Verdict{}) {
		got.DecidedBy = err.Error() // it was never judged: only the reason can be shown
	}
	return got, err == nil
}

// forget waits until the story's policies have no effect any more, so that the next story does not see them.
func (m *mesh) forget(ctx context.Context, s story) error {
	for _, c := range s.calls {
		c.want = deny(nobody)
		if got, ok := m.settle(ctx, c); !ok {
			return fmt.Errorf("%s: the policies were removed, but %s calling %s is still %s", s.title, c.client, c.to, got)
		}
	}
	return nil
}
