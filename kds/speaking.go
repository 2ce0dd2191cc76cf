package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
)

// Understands reports whether a zone has a session with this server, in which it announced the features.
func (g *Global) Understands(zone string, f exchange.Features) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[zone]
	return s != nil && s.features.Has(f)
}

// LastActive returns when the last bytes of a zone arrived over its session with this server; zero if there is no
// session, or the system does not tell.
func (g *Global) LastActive(zone string) time.Time {
	g.mu.Lock()
	s := g.sessions[zone]
	g.mu.Unlock()
	if s == nil || s.transport == nil {
		return time.Time{}
	}
	if quiet, ok := quietFor(s.transport.conn); ok {
		return g.config.Now().Add(-quiet)
	}
	return time.Time{}
}
