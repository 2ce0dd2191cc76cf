package panics

import (
	"errors"
	"log"
	"net/http"
	"strings"
)

// Handler returns h guarded: a panic closes the caller's connection. net/http would do that too, but would not count
// the panic.
func (g *Guard) Handler(serving string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if !aborts(reason) {
				g.Caught(serving, reason)
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// aborts reports whether a handler ended the connection on purpose.
func aborts(reason any) bool {
	err, ok := reason.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// ErrorLog returns a log for http.Server. net/http reports the panics that it recovers from itself, such as one in a
// callback of a TLS handshake, only there. The rest, such as failed handshakes, is logged at level debug.
func (g *Guard) ErrorLog() *log.Logger {
	if g == nil {
		return nil
	}
	return log.New(errorLog{g}, "", 0)
}

type errorLog struct{ guard *Guard }

// Write implements io.Writer. Each call is one message.
func (l errorLog) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	if strings.Contains(text[:min(len(text), 64)], "panic serving") {
		l.guard.log.Error(Message, "serving", "http connection", "reason", text)
		l.guard.total.WithLabelValues("http connection").Inc()
	} else {
		l.guard.log.Debug("http connection", "error", text)
	}
	return len(b), nil
}
