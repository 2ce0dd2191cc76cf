package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of requests for metrics, whose answers are long and need no authentication. A slow reader holds a place, so an
// address has only a few of them, and not for long.
const (
	mostScrapes        = 16
	mostScrapesOfOne   = 4
	scrapeWriteTimeout = 10 * time.Second
)

// scrapes are the requests for metrics under way.
type scrapes struct {
	mu  sync.Mutex
	all int            // guarded by mu
	of  map[string]int // guarded by mu: by address
}

// handler answers by h, and with 503 whoever has too many answers under way.
func (s *scrapes) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		if !s.enter(address) {
			http.Error(w, "too many requests for metrics at once: try again in a moment", http.StatusServiceUnavailable)
			return
		}
		defer s.leave(address)
		// A connection that does not support deadlines is not a socket, so it has no slow reader.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeWriteTimeout))
		h.ServeHTTP(w, r)
	})
}

func (s *scrapes) enter(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= mostScrapes || s.of[address] >= mostScrapesOfOne {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[address]++
	return true
}

func (s *scrapes) leave(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[address]--; s.of[address] == 0 {
		delete(s.of, address)
	}
}
