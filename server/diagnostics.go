package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/causeway-mesh/causeway/panics"
)

// Diagnostics serves /livez, /readyz and /metrics, and on loopback /debug/pprof/. A process is alive when it answers,
// and ready when every check passes.
type Diagnostics struct {
	// Registry holds the process's metrics. Parts register theirs at start.
	Registry *prometheus.Registry
	// Detail holds metrics that grow with the number of objects. `/metrics?detail=types` adds them to the others.
	Detail *prometheus.Registry

	panics   *panics.Guard
	mu       sync.Mutex
	starting error      // guarded by mu: why the server does not serve yet
	checks   []check    // guarded by mu
	expiries []Expiries // guarded by mu
}

type check struct {
	name string
	fn   func() error
}

// NewDiagnostics returns diagnostics with the Go and process metrics and the build's version.
func NewDiagnostics() *Diagnostics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "causeway_build_info", Help: "Always 1; the label says which version runs.",
		ConstLabels: prometheus.Labels{"version": Version()},
	})
	build.Set(1)
	d := &Diagnostics{Registry: r, Detail: prometheus.NewRegistry()}
	r.MustRegister(build, d)
	return d
}

// Guard makes guard recover what would end the process because of one caller, and shows how often it did. Call it
// before Serve.
func (d *Diagnostics) Guard(guard *panics.Guard) {
	if d.panics = guard; guard != nil {
		d.Registry.MustRegister(guard)
	}
}

// AddCheck makes readiness depend on fn, which must be quick and safe for concurrent use.
func (d *Diagnostics) AddCheck(name string, fn func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks = append(d.checks, check{name: name, fn: fn})
}

// SetStarting makes the server not ready for the given reason, whatever the checks report, until it is called with nil.
func (d *Diagnostics) SetStarting(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starting = why
}

// Serve serves the endpoints on l, as ServeHTTP does.
func (d *Diagnostics) Serve(ctx context.Context, l net.Listener) error {
	h := d.Handler(l.Addr())
	return ServeHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		GuestOf(r.Context()).Prove() // a request suffices: there is no other proof here
		h.ServeHTTP(w, r)
	}), d.panics)
}

// Handler returns the endpoints of a server that listens on a. Only callers on this machine get profiles.
func (d *Diagnostics) Handler(a net.Addr) http.Handler {
	mux := http.NewServeMux()
	addProfiles(mux, a)
	mux.HandleFunc("GET "+LivePage, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+ReadyPage, d.ready)
	metrics := promhttp.HandlerFor(printable{d.Registry}, promhttp.HandlerOpts{Registry: d.Registry})
	detailed := promhttp.HandlerFor(printable{prometheus.Gatherers{d.Registry, d.Detail}}, promhttp.HandlerOpts{})
	mux.Handle("GET /metrics", withoutPages(new(scrapes).handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch detail := r.URL.Query().Get("detail"); detail {
		case "":
			metrics.ServeHTTP(w, r)
		case "types":
			detailed.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("detail=%q: want types", detail), http.StatusBadRequest)
		}
	}))))
	return mux
}

func (d *Diagnostics) ready(w http.ResponseWriter, _ *http.Request) {
	if err := d.notReady(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// notReady returns why the server does not serve yet, or the error of the first failing check.
func (d *Diagnostics) notReady() error {
	d.mu.Lock()
	checks, starting := d.checks, d.starting
	d.mu.Unlock()
	if starting != nil {
		return fmt.Errorf("starting: %w", starting)
	}
	for _, c := range checks {
		if err := c.fn(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}
