package callers

import (
	"cmp"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// mostCompared limits the pairs of services and callers that a forecast compares: as many as the largest answer has.
const mostCompared = maxSize * maxSize

// preview completes the answers to dry runs with the verdicts that would change.
func (h *handler) preview(p *api.Preview) error {
	names := map[string]bool{}
	for i := range p.Changes {
		switch p.Changes[i].New.Type {
		case resources.TypeMeshTrafficPermission, resources.TypeTrafficTarget, resources.TypeHTTPRouteGroup:
			names[p.Changes[i].New.Mesh] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	did := h.pairs(rbac.Known{}, p.ReadsServer)
	out := &api.ForecastVerdicts{Changes: []api.ForecastVerdict{}, Unseen: did.unknown, Since: did.Since.UTC(), Dropped: did.Dropped}
	for name := range names {
		before := h.meshes.of(name)
		if before == nil || p.After.Get(resources.Key{Type: resources.TypeMesh, Name: name}) == nil {
			continue // a mesh that is about to be created is empty
		}
		if before.revision != p.Before.Revision() { // concurrent writes by others are not part of this change
			before = newMesh(h.config, p.Before, name, before)
		}
		h.compare(out, before, p.After, p.Reader, did)
	}
	slices.SortStableFunc(out.Changes, func(a, b api.ForecastVerdict) int {
		return cmp.Or(cmp.Compare(weight(&a), weight(&b)), cmp.Compare(b.Allowed+b.Denied, a.Allowed+a.Denied),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.Caller, b.Caller))
	})
	for i := range out.Changes {
		switch weight(&out.Changes[i]) {
		case lost:
			out.Lost++
		case gained:
			out.Gained++
		default:
			out.Other++
		}
	}
	out.Changes = out.Changes[:min(len(out.Changes), api.MaxForecastVerdicts)]
	p.Forecast.Verdicts = out
	return nil
}

// The kinds of changes, in the order in which they are listed.
const (
	lost = iota
	other
	gained
)

// weight returns the kind of a change. A caller that loses some of its possible requests counts as a loss.
func weight(v *api.ForecastVerdict) int {
	rank := map[string]int{Deny: 0, Depends: 1, Allow: 2}
	switch before, after := rank[v.Before], rank[v.After]; {
	case after < before:
		return lost
	case after > before:
		return gained
	}
	return other
}

// compare adds the differing verdicts of one mesh. It examines only services with a proxy whose rules change.
func (h *handler) compare(out *api.ForecastVerdicts, before *mesh, next store.Snapshot, reader *api.Reader, did seen) {
	after := newMesh(h.config, next, before.name, before)
	q := &question{mesh: before.name}
	now, then := before.rowsFor(q, reader, h.config.Zone), after.rowsFor(q, reader, h.config.Zone)
	out.LeftOut += then.leftOut
	same, rows := map[*inbound]bool{}, map[string]*row{}
	for i := range now.rows {
		rows[now.rows[i].service.KRI] = &now.rows[i]
		for _, in := range now.rows[i].inbounds {
			same[in] = true
		}
	}
	callers := after.columnsFor(q, reader, then.rows, did.Times)
	x, y := h.matrixOf(before, q.known, reader, callers, did), h.matrixOf(after, q.known, reader, callers, did)
	compared := 0
	for i := range then.rows {
		r := &then.rows[i]
		old := rows[r.service.KRI]
		if old == nil || !slices.ContainsFunc(r.inbounds, func(in *inbound) bool { return !same[in] }) {
			continue
		}
		if compared += len(callers); compared > mostCompared && out.Compared > 0 {
			out.NotCompared++
			continue
		}
		out.Compared++
		out.Changes = append(out.Changes, differences(x, y, old, r)...)
	}
}

// differences returns the callers for which the rules of a service decide differently afterwards.
func differences(x, y *matrix, old, r *row) (out []api.ForecastVerdict) {
	inboundsBefore, _ := x.judging(old)
	inboundsAfter, _ := y.judging(r)
	judgesBefore, judgesAfter := x.judges(inboundsBefore), y.judges(inboundsAfter)
	for i := range x.callers {
		a, b := together(judgesBefore, x.clients[i]), together(judgesAfter, y.clients[i])
		if alike(&a.Enforced, &b.Enforced) && alike(&a.DryRun, &b.DryRun) {
			continue
		}
		times := y.seen(r, y.callers[i].SpiffeID)
		v := api.ForecastVerdict{Service: r.service.KRI, Caller: y.callers[i].SpiffeID, Before: verdictOf(&a.Enforced), After: verdictOf(&b.Enforced),
			Policy: y.names[y.place(b.Enforced.Name)], Allowed: times.Allowed, Denied: times.Denied}
		if shadow := verdictOf(&b.DryRun); shadow != v.After {
			v.Shadow = shadow
		}
		out = append(out, v)
	}
	return out
}

// alike reports whether two outlooks are the same for a client. A verdict that depends on the request is the same only
// if it depends on the same parts by the same policy.
func alike(a, b *rbac.Chance) bool {
	if a.Depends || b.Depends {
		return a.Depends == b.Depends && a.Parts == b.Parts && a.Name == b.Name
	}
	return a.Allowed == b.Allowed
}
