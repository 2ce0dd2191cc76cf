package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of metrics requests, whose responses are long and need no authentication. A slow reader holds a place, so an
// address gets only a few, and not for long.
const (
	mostScrapes        = 16
	mostScrapesOfOne   = 4
	scrapeWriteTimeout = 10 * time.Second
)

// scrapes tracks the metrics requests in progress.
type scrapes struct {
	mu  sync.Mutex
	all int            // guarded by mu
	of  map[string]int // guarded by mu: by address
}

// handler responds with h, or with 503 to an address with too many responses in progress.
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
