package api

import "github.com/causeway-mesh/causeway/resources"

// ConditionsFunc says what a resource's writer should know of it: nil where there is nothing. It is called for each
// resource that is read, from many requests at once, so it must be quick.
type ConditionsFunc func(r *resources.Resource) []resources.Condition

// AddConditions shows what f says in `status.conditions` of each resource that is read, in items and in lists, beside
// what others said before. Nothing is stored. Call it before the server serves.
func (s *Server) AddConditions(f ConditionsFunc) { s.conditions = append(s.conditions, f) }

// shown is r with its conditions, which name nothing that reader may not read. A status that cannot hold them stays as it is.
func (s *Server) shown(r *resources.Resource, reader *Reader) *resources.Resource {
	var all []resources.Condition
	for _, f := range s.conditions {
		all = append(all, f(r)...)
	}
	for i := range all {
		all[i].Message = reader.Text(all[i].Message)
	}
	with, err := resources.WithConditions(r, all)
	if err != nil {
		s.config.Log.Warn("conditions are not shown", "mesh", r.Mesh, "type", r.Type, "name", r.Name, "error", err)
		return r
	}
	return with
}
