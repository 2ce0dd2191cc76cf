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
	of, ofGlobal := s.showsOfGlobal(r)
	if status == http.StatusNotFound {
		of, ofGlobal = "", true
	}
	for _, text := range s.config.Outdated(ofGlobal, of) {
		Warn(h, text)
	}
}

// showsOfGlobal reports whether the answer to a request that succeeds depends on what a zone has of its global, and on
// which type; empty if it may be any.
func (s *Server) showsOfGlobal(r *http.Request) (of resources.Type, is bool) {
	row := s.byPattern[r.Pattern]
	switch {
	case row == nil:
		return "", true
	case changes(r.Method) && row.Verb != resources.VerbRead && !r.URL.Query().Has(dryRunQuery):
		return "", false
	case row.Policies:
		return "", true
	}
	name := row.Type
	if name == "" {
		name = typeOfPath(r)
	}
	d, ok := resources.Lookup(resources.Type(name))
	if !ok || !d.GlobalToZone && !d.AcrossZones {
		return "", false
	}
	return d.Type, true
}
