package discovery

import (
	"context"
	"errors"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// holding is the subject of one limit of a namespace.
type holding struct {
	of              resources.Type
	mesh, namespace string
}

func holdingOf(r *resources.Resource) holding { return holding{r.Type, r.Mesh, r.Namespace} }

// has returns how much a namespace has in the store.
func (p *pass) has(at holding) int {
	total, known := p.stored[at]
	if !known {
		for r := range p.snap.List(store.Query{Type: at.of, Mesh: at.mesh, Namespace: &at.namespace}) {
			total += p.d.Limits.Count(r)
		}
		p.stored[at] = total
	}
	return total
}

// crowds returns why a resource would exceed a limit of its namespace, and counts it if it would not. old is the
// resource that it replaces, or nil. Stored resources may stay, change and shrink, as for users.
func (p *pass) crowds(want, old *resources.Resource) string {
	at, more := holdingOf(want), p.d.Limits.Count(want)
	if old != nil {
		more -= p.d.Limits.Count(old)
	}
	if more > 0 {
		if why := p.d.Limits.Over(want, p.has(at)+p.added[at]+more); why != "" {
			if want.Type == resources.TypeDataplane {
				p.d.spaceLocked(want.Namespace).crowded[want.Name] = true
			}
			return why
		}
	}
	p.added[at] += more
	return ""
}

// leaves counts a resource that will be removed, and marks those that wait for its room.
func (p *pass) leaves(old *resources.Resource) {
	p.added[holdingOf(old)] -= p.d.Limits.Count(old)
	if s := p.d.spaceLocked(old.Namespace); old.Type == resources.TypeDataplane && len(s.crowded) > 0 {
		s.retry()
		p.d.wake()
	}
}

// apply writes a batch. It leaves out only resources that the store can never hold: they stay unchanged.
func (d *Controller) apply(ctx context.Context, ops []store.Op) error {
	for len(ops) > 0 {
		_, err := d.Store.Apply(ctx, store.Batch{Ops: ops})
		var large *store.TooLargeError
		if !errors.As(err, &large) {
			return err
		}
		rest := slices.DeleteFunc(slices.Clone(ops), func(op store.Op) bool { return op.Put != nil && op.Put.Key == large.Key })
		if len(rest) == len(ops) {
			return err
		}
		d.Log.Error("an object of the cluster is too large for the store; its previous version stays", "resource", large.Key, "error", err)
		ops = rest
	}
	return nil
}
