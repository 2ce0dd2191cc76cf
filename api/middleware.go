package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// maxURLBytes bounds the request line. The listener bounds the headers.
const maxURLBytes = 8 << 10

// metrics counts requests by route. The label is the pattern, not the path, to bound the number of series.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_api_requests_total", Help: "Requests to the HTTP API by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "causeway_api_request_seconds", Help: "Time to answer a request to the HTTP API by route.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"route"}),
	}
	if r != nil {
		r.MustRegister(m.requests, m.seconds)
	}
	return m
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{ResponseWriter: w}
	rec.begin = func(status int) {
		insistOnJudgement(r, status)
		s.noteRevision(r, rec.Header(), status)
		s.noteOutdated(r, rec.Header(), status)
	}
	if s.config.Tracer != nil {
		var end func(*http.Request, int)
		r, end = s.trace(r)
		defer func() { end(r, rec.status) }()
	}
	defer func() {
		s.recovered(rec, r, recover())
		s.observe(r, rec.status, time.Since(start))
	}()
	secureHeaders(rec.Header())
	rec.Header().Set(ServerHeader, s.mode())
	if len(r.RequestURI) > maxURLBytes {
		hangUp(rec.Header())
		s.fail(rec, r, NewError(http.StatusRequestURITooLong, "URI Too Long",
			fmt.Sprintf("the URL is longer than %d bytes", maxURLBytes)))
		return
	}
	if s.servePage(rec, r) {
		return
	}
	if len(r.TransferEncoding) > 0 {
		hangUp(rec.Header()) // with a length beside the chunks, a proxy in front may split requests differently
	}
	admitted, err := s.admit(r)
	if err != nil {
		hangUp(rec.Header())
		s.fail(rec, admitted, err)
		return
	}
	r = admitted // the mux sets the pattern on it
	done, err := s.bodies.acquire(rec.Header(), r)
	if err != nil {
		s.fail(rec, r, err)
		return
	}
	defer done()
	s.mux.ServeHTTP(rec, r)
}

// hangUp closes the connection after the response. The server reads nothing more from a refused caller, neither the
// body nor another request.
func hangUp(h http.Header) { h.Set("Connection", "close") }

// secureHeaders tell browsers not to share responses with other sites and not to run their content. All responses have the
// same values, which nobody changes: who sets or adds one has another list.
func secureHeaders(h http.Header) { maps.Copy(h, secure) }

var secure = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cross-Origin-Opener-Policy":   {"same-origin"}, // a page that opens this one in a window keeps no hold of it
	"X-Frame-Options":              {"DENY"},
	"Referrer-Policy":              {"no-referrer"},
	"Cache-Control":                {"no-store"},
}

var errPanic = errors.New("panic")

// recovered responds to a request whose handler panicked with reason. It does nothing if reason is nil.
func (s *Server) recovered(rec *recorder, r *http.Request, reason any) {
	if reason == nil {
		return
	}
	if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(reason) // a handler panics with this to abort the connection
	}
	s.config.Panics.Caught("api", fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, reason))
	if rec.status == 0 {
		s.fail(rec, r, errPanic)
	}
}

func (s *Server) observe(r *http.Request, status int, took time.Duration) {
	if status == 0 {
		status = http.StatusOK
	}
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	s.metrics.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	s.metrics.seconds.WithLabelValues(route).Observe(took.Seconds())
	if s.config.Log.Enabled(r.Context(), slog.LevelDebug) {
		s.config.Log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", status, "took", took, "from",
			r.RemoteAddr)
	}
}

// fail responds with the error object.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	err = s.refusedFor(r, err)
	e := asError(err)
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="causeway"`)
	}
	if errors.Is(err, store.ErrUnavailable) {
		w.Header().Set("Retry-After", retryAfter)
	}
	if e.Status >= http.StatusInternalServerError && !errors.Is(err, errPanic) {
		s.config.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", e.Status, "error", err)
	}
	s.writeError(w, r, e)
}

// writeError responds with an error that needs no line in the log.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, e *Error) {
	e = e.complete()
	if !changes(r.Method) {
		e.Outcome = ""
	}
	if err := WriteJSON(w, e.Status, e); err != nil {
		s.config.Log.Debug("answer not sent", "path", r.URL.Path, "error", err)
	}
}

// retryAfter is the number of seconds after which a caller may retry a write to a store that cannot write.
const retryAfter = "2"

// recorder records the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
	// begin is called before the headers are sent.
	begin func(status int)
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.begin(status)
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.begin(http.StatusOK)
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteJSON responds with v in the API's JSON format: one space per level, no HTML escapes.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	jsonHeaders(w)
	w.WriteHeader(status)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printing.JSON(resources.Redact(out.Bytes()))) //nolint:gosec // JSON, and the headers say so: no browser runs it
	return err
}

// WriteLongJSON responds with 200 and v as JSON on one line, which makes responses that grow with the mesh a third
// shorter.
func WriteLongJSON(w http.ResponseWriter, v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	jsonHeaders(w)
	_, err := w.Write(printing.JSON(resources.Redact(out.Bytes()))) //nolint:gosec // JSON, and the headers say so: no browser runs it
	return err
}

func jsonHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
}

// writeRaw responds with 200 and JSON that is already encoded.
func writeRaw(w http.ResponseWriter, raw []byte) error {
	jsonHeaders(w)
	_, err := w.Write(printing.JSON(resources.Redact(resources.Indent(raw)))) //nolint:gosec // JSON, and the headers say so: no browser runs it
	return err
}
