package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// spansAddress is the address of the receiver of spans in the manifests. The demo puts its own in its place.
const spansAddress = "127.0.0.1:9411"

// maxSpans bounds a request with spans, in bytes.
const maxSpans = 1 << 20

// spans receives spans in Zipkin's format.
type spans struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}

	mu    sync.Mutex
	paths map[string]bool // guarded by mu; the URLs of spans with a tag of shop's owner
}

func startSpans() (*spans, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &spans{listener: l, done: make(chan struct{}), paths: map[string]bool{}}
	s.server = &http.Server{Handler: http.HandlerFunc(s.take), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l)
	}()
	return s, nil
}

func (s *spans) address() string { return s.listener.Addr().String() }

func (s *spans) take(w http.ResponseWriter, r *http.Request) {
	var got []struct {
		Kind string            `json:"kind"`
		Tags map[string]string `json:"tags"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSpans)).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range got {
		if span.Tags["owner"] == "shop" {
			s.paths[span.Kind+" "+pathOf(span.Tags["http.url"])] = true
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// has reports whether a span of a kind and a path has come.
func (s *spans) has(kind, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[kind+" "+path]
}

func (s *spans) close() error {
	err := s.server.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
