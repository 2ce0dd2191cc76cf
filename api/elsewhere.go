package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/resources"
)

// elsewhereType is the error type of a server that cannot know the answer because only servers of the other kind do.
const elsewhereType = "/std-errors/elsewhere"

// elsewhere returns a 404 for what only the servers in on can answer. It does not say whether the thing exists.
func elsewhere(what string, on Servers) *Error {
	e := NewError(http.StatusNotFound, "Not Known Here", what+" exists on zones only: ask the zone")
	if on == OnGlobal {
		e.Detail = what + " exists on the global only: ask a global"
	}
	e.Type = elsewhereType
	return e
}

// IsElsewhere reports whether err is from a server that cannot know, because only servers of the other kind do.
// IsNotFound is true of it, too.
func IsElsewhere(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == elsewhereType
}

// addElsewhere responds on the routes that only servers of the other kind have, once the caller is authenticated.
func (s *Server) addElsewhere() {
	here := OnGlobal
	if s.config.Home.Zone != "" {
		here = OnZone
	}
	for i := range rows {
		row := &rows[i]
		if row.On&here != 0 {
			continue
		}
		s.mux.HandleFunc(row.Pattern, func(w http.ResponseWriter, r *http.Request) {
			s.fail(w, r, elsewhere(fmt.Sprintf("%s %s", row.Method(), r.URL.Path), row.On))
		})
	}
}

// knows reports whether a resource of the type would be here if it existed. A zone alone may have all types.
func (s *Server) knows(t resources.Type) bool {
	d, ok := resources.Lookup(t)
	return !ok || s.config.Home.Zone == "" || s.config.Home.Alone || !d.StaysOnGlobal()
}
