package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
)

// control is where the server of a pod is told what to do: see set.
const control = "127.0.0.1:18080"

// state is what a server does.
type state struct {
	health atomic.Int64 // the status of /healthz
	rpc    *health.Server

	mu    sync.Mutex
	lines string
	open  net.Listener // for lines, nil while it is closed
}

// serve answers on up to three ports: HTTP, gRPC's protocol for health, and lines, of which it says the first. It prints
// each request.
func serve(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	web := f.String("http", ":8080", "address for HTTP")
	rpc := f.String("grpc", "", "address for gRPC")
	lines := f.String("lines", "", "address for lines")
	leave := f.Duration("leave", 0, "how long it goes on serving after it is told to end")
	if err := f.Parse(args); err != nil {
		return err
	}
	s := &state{rpc: health.NewServer(), lines: *lines}
	s.health.Store(http.StatusOK)
	if err := s.openLines(); err != nil {
		return err
	}
	if *rpc != "" {
		l, err := net.Listen("tcp", *rpc)
		if err != nil {
			return err
		}
		server := grpc.NewServer()
		healthgrpc.RegisterHealthServer(server, s.rpc)
		go func() { _ = server.Serve(l) }()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/set", s.set)
	go func() {
		_ = (&http.Server{Addr: control, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
	}()
	server := &http.Server{Addr: *web, Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		timer := time.NewTimer(*leave)
		<-timer.C
		_ = server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *state) answer(w http.ResponseWriter, r *http.Request) {
	fmt.Println("asked", r.Method, r.URL.RequestURI())
	name, _ := os.Hostname()
	if r.Header.Get("Upgrade") == "websocket" {
		answerSocket(w, r)
		return
	}
	if r.URL.Path == "/healthz" {
		w.WriteHeader(int(s.health.Load()))
	}
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprintf(w, "%s took %d bytes\n", name, n)
}

// set changes what the server does: health=STATUS, grpc=up or down, lines=up or down.
func (s *state) set(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if status, err := strconv.ParseInt(q.Get("health"), 10, 64); err == nil {
		s.health.Store(status)
	}
	if to := q.Get("grpc"); to != "" {
		is := map[bool]healthgrpc.HealthCheckResponse_ServingStatus{true: healthgrpc.HealthCheckResponse_SERVING,
			false: healthgrpc.HealthCheckResponse_NOT_SERVING}[to == "up"]
		s.rpc.SetServingStatus("", is)
	}
	switch q.Get("lines") {
	case "up":
		if err := s.openLines(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case "down":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open != nil {
			_ = s.open.Close()
			s.open = nil
		}
	}
}

// openLines serves lines: it greets, and says each line again.
func (s *state) openLines() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == "" || s.open != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.lines)
	if err != nil {
		return err
	}
	s.open = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintln(c, "220 welcome")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return nil
}
