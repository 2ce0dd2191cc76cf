package api

import (
	"maps"

	"github.com/causeway-mesh/causeway/resources"
)

// ConditionsFunc returns conditions for the author of a resource, or nil if there are none. It is called for each
// resource that is read, by many requests at once, so it must be fast.
type ConditionsFunc func(r *resources.Resource) []resources.Condition

// AddConditions shows the conditions that f returns in `status.conditions` of each resource that is read, in items and
// in lists, after those of earlier functions. They are not stored. Call it before the server serves.
func (s *Server) AddConditions(f ConditionsFunc) { s.conditions = append(s.conditions, f) }

// StatusFunc returns fields of the status of a resource, or nil. It is called like a ConditionsFunc. Texts that name
// other resources go through text, which removes what the reader may not read.
type StatusFunc func(r *resources.Resource, text func(string) string) map[string]any

// AddStatus shows the fields that f returns in `status`, as AddConditions shows conditions.
func (s *Server) AddStatus(f StatusFunc) { s.statuses = append(s.statuses, f) }

// shown returns r with its conditions, which name nothing that reader may not read. A status that cannot hold
// conditions stays unchanged.
func (s *Server) shown(r *resources.Resource, reader *Reader) *resources.Resource {
	all := s.conditionsFor(r, reader)
	fields := map[string]any{}
	for _, f := range s.statuses {
		maps.Copy(fields, f(r, reader.Text))
	}
	with, err := resources.WithStatus(r, fields, all)
	if err != nil {
		s.config.Log.Warn("conditions are not shown", "mesh", r.Mesh, "type", r.Type, "name", r.Name, "error", err)
		return r
	}
	return with
}

// conditionsFor returns the conditions of a resource, which name nothing that reader may not read.
func (s *Server) conditionsFor(r *resources.Resource, reader *Reader) []resources.Condition {
	var all []resources.Condition
	for _, f := range s.conditions {
		all = append(all, f(r)...)
	}
	for i := range all {
		all[i].Message = reader.Text(all[i].Message)
	}
	return all
}
