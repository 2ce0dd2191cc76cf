package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// noteOutdated adds warnings to what is shown, or not found, while this server does not know what others wrote. The page
// and other answers to strangers have none: they name machines of the operator.
func (s *Server) noteOutdated(r *http.Request, h http.Header, status int) {
	if s.config.Outdated == nil || status >= http.StatusBadRequest && status != http.StatusNotFound {
		return
	}
	asked := access.AskedOf(r.Context())
	if asked == nil || s.config.Guard != nil && asked.Subject.Method == access.Anonymously {
		return
	}
	for _, text := range s.config.Outdated(status == http.StatusNotFound || s.showsOfGlobal(r)) {
		Warn(h, text)
	}
}

// showsOfGlobal reports whether the answer to a request that succeeds depends on what a zone has of its global.
func (s *Server) showsOfGlobal(r *http.Request) bool {
	row := s.byPattern[r.Pattern]
	switch {
	case row == nil:
		return true
	case changes(r.Method) && row.Verb != resources.VerbRead && !r.URL.Query().Has(dryRunQuery):
		return false
	case row.Policies:
		return true
	}
	of := row.Type
	if of == "" {
		of = typeOfPath(r)
	}
	d, ok := resources.Lookup(resources.Type(of))
	return ok && (d.GlobalToZone || d.AcrossZones)
}
