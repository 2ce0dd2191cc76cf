package callers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

// typeSpiffeID is the type of the identities of a MeshService that clients can have.
const typeSpiffeID = "SpiffeID"

// wants reports whether the question selects a service.
func (q *question) wants(s *Service) bool {
	return (q.zone == "" || s.Zone == q.zone) && (q.namespace == "" || s.Namespace == q.namespace) &&
		strings.Contains(s.Name, q.service)
}

// columnsFor returns the callers that a question selects and a reader may see: the identities of Dataplanes, those that
// MeshServices name, and those that called one of the rows, sorted.
func (m *mesh) columnsFor(q *question, reader *api.Reader, rows []row, pairs map[accesslog.Pair]accesslog.Times) []Caller {
	found := map[string]*Caller{}
	add := func(id, zone, namespace, name string) *Caller {
		if id == "" || !strings.Contains(id, q.caller) {
			return nil
		}
		c := found[id]
		if c == nil {
			c = &Caller{SpiffeID: id, Zone: zone, Namespace: namespace, Name: name}
			found[id] = c
		}
		return c
	}
	for _, p := range m.proxies {
		if !reader.May(p.resource) {
			continue
		}
		if c := add(p.identity, p.parsed.Zone, p.parsed.Namespace, p.parsed.Name); c != nil {
			c.Proxies++
		}
	}
	for _, r := range m.services {
		service, err := resources.SpecAs[resources.MeshService](r)
		if err != nil || !reader.May(r) {
			continue
		}
		for _, id := range service.Identities {
			if id.Type == typeSpiffeID {
				add(id.Value, r.Zone(), r.HomeNamespace(), r.DisplayName())
			}
		}
	}
	asked := map[string]bool{}
	for i := range rows {
		for _, in := range rows[i].inbounds {
			asked[in.kri] = true
		}
	}
	for pair := range pairs {
		if asked[pair.Inbound] {
			add(pair.Client, "", "", "")
		}
	}
	out := make([]Caller, 0, len(found))
	for _, c := range found {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Caller) int { return cmp.Compare(a.SpiffeID, b.SpiffeID) })
	return out
}
