package api

import (
	"net/http"
	"time"
)

// noteOutdated adds a warning to what is shown, or not found, while this server does not know what others wrote.
func (s *Server) noteOutdated(h http.Header, status int) {
	if s.config.Outdated == nil || status >= http.StatusBadRequest && status != http.StatusNotFound {
		return
	}
	if since, why := s.config.Outdated(); !since.IsZero() {
		warn(h, "what others wrote since "+since.UTC().Format(time.RFC3339)+" is unknown to the server that was asked: "+why)
	}
}
