package api

import (
	"errors"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// keepShown replaces the shown hashes in documents by the stored secrets.
func (s *Server) keepShown(state store.Snapshot, docs []*resources.Resource) ([]*resources.Resource, error) {
	out := docs
	failed := &resources.DocumentsError{}
	for i, doc := range docs {
		if doc.Descriptor().Sensitive == nil {
			continue
		}
		kept, err := resources.KeepShown(doc, state.Get(doc.Key))
		var invalid *resources.InvalidError
		switch {
		case errors.As(err, &invalid):
			invalid.Document = i + 1
			failed.Invalid = append(failed.Invalid, invalid)
		case err != nil:
			return nil, err
		case kept != doc:
			if &out[0] == &docs[0] { // the original slice belongs to the caller
				out = append([]*resources.Resource(nil), docs...)
			}
			out[i] = kept
		}
	}
	if len(failed.Invalid) > 0 {
		return nil, failed
	}
	return out, nil
}

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
