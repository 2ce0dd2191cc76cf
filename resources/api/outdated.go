package api

import (
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
)

// noteOutdated adds a warning to what is shown, or not found, while this server does not know what others wrote. The page
// and other answers to strangers have none: why names machines of the operator.
func (s *Server) noteOutdated(r *http.Request, h http.Header, status int) {
	if s.config.Outdated == nil || status >= http.StatusBadRequest && status != http.StatusNotFound {
		return
	}
	asked := access.AskedOf(r.Context())
	if asked == nil || s.config.Guard != nil && asked.Subject.Method == access.Anonymously {
		return
	}
	if since, why := s.config.Outdated(); !since.IsZero() {
		warn(h, "what others wrote since "+since.UTC().Format(time.RFC3339)+" is unknown to the server that was asked: "+why)
	}
}
