package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// sealed returns a document as the store would hold it.
func (s *Server) sealed(doc, old *resources.Resource) (*resources.Resource, error) {
	if s.config.Fields == nil {
		return doc, nil
	}
	return s.config.Fields.Seal(doc, old)
}

// reveal handles POST .../_reveal. It responds with one resource and its secrets in plain text, if the caller may read
// secrets. The request is in the audit log.
func (s *Server) reveal(w http.ResponseWriter, r *http.Request) error {
	found, err := s.named(r)
	if err != nil {
		return err
	}
	if err := s.Authorize(r, access.OnResource(resources.VerbReadSecret, found)); err != nil {
		return err
	}
	if s.config.Fields != nil {
		if found, err = s.config.Fields.Open(found); err != nil {
			return err
		}
	}
	return s.writeItem(w, r, found)
}
