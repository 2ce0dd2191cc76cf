package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// HTTP is an application that answers every request with its name and the request.
type HTTP struct {
	name     string
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	requests atomic.Int64
	failures atomic.Int64 // requests for /flaky
}

// Answer is the answer of HTTP to each request, as JSON.
type Answer struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	// Count is the number of requests so far, including this one.
	Count int64 `json:"count"`
}

// StartHTTP serves HTTP/1.1 and HTTP/2 without TLS on a free loopback port until Close.
func StartHTTP(name string) (*HTTP, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &HTTP{name: name, listener: l, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/count", a.count)
	mux.HandleFunc("/wait/{duration}", a.wait)
	mux.HandleFunc("/flaky", a.flaky)
	mux.HandleFunc("/", a.echo)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, Protocols: protocols}
	go func() {
		defer close(a.done)
		_ = a.server.Serve(l)
	}()
	return a, nil
}

// Port returns the port on 127.0.0.1.
func (a *HTTP) Port() int { return a.listener.Addr().(*net.TCPAddr).Port }

// Count returns the number of requests, without those for /count.
func (a *HTTP) Count() int64 { return a.requests.Load() }

// Close stops the application at once and waits for that.
func (a *HTTP) Close() error {
	err := a.server.Close()
	<-a.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (a *HTTP) echo(w http.ResponseWriter, r *http.Request) {
	answer := Answer{Service: a.name, Method: r.Method, Path: r.URL.Path, Count: a.requests.Add(1)}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// wait answers after the duration that the path names, at most 10 s, or when the client disconnects.
func (a *HTTP) wait(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.PathValue("duration"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(min(d, 10*time.Second)):
		a.echo(w, r)
	case <-r.Context().Done():
	}
}

// flaky answers every other request with 503.
func (a *HTTP) flaky(w http.ResponseWriter, r *http.Request) {
	if a.failures.Add(1)%2 == 1 {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	a.echo(w, r)
}

func (a *HTTP) count(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, a.Count()) }
