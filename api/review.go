package api

import (
	"context"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// Review evaluates a resource that a user is about to write elsewhere, as `PUT` would, and returns what would happen:
// warnings and, with preview, role, destinations and proxies. It names nothing that its Author may not read. It stores
// nothing. Its errors are those of PUT.
func (s *Server) Review(ctx context.Context, doc *resources.Resource, preview bool) (*ForecastItem, error) {
	if err := s.discovered(s.config.Store.Snapshot(), doc); err != nil {
		return nil, err
	}
	ctx, _ = s.asFeed(ctx, access.EventWrite)
	ctx = context.WithValue(ctx, authorKey{}, s.Author(doc))
	forecast, err := s.foresee(ctx, []*resources.Resource{doc}, preview)
	if err != nil {
		return nil, err
	}
	return &forecast.Results[0], nil
}

// Assigned returns the identities that a write would newly give to a Dataplane, or to those that answer for a
// MeshService, each as the action that a caller of the HTTP API needs for it. The caller checks whether the author has
// them.
func (s *Server) Assigned(doc *resources.Resource) []access.Action {
	state := s.config.Store.Snapshot()
	return access.Identities(state, state.Get(doc.Key), s.config.Home.Labelled(doc))
}

// ReviewDelete evaluates a deletion that a user is about to make elsewhere, as `DELETE` would. A resource that is not
// in the store may be deleted.
func (s *Server) ReviewDelete(key resources.Key) error {
	state := s.config.Store.Snapshot()
	if state.Get(key) == nil {
		return nil
	}
	return s.checkDelete(state, descriptorOfType(key.Type), key, nil)
}

// Explained returns the API's error object for an error of its methods.
func Explained(err error) *Error { return asError(err) }

// ConditionsOf returns the conditions of a stored resource, limited to what its Author may read.
func (s *Server) ConditionsOf(r *resources.Resource) []resources.Condition {
	return s.conditionsFor(r, s.Author(r))
}
