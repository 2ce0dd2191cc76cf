package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	// writeTimeout bounds a whole answer, so that nobody who reads slowly keeps one for ever. It is longer than any answer waits.
	writeTimeout   = 3 * time.Minute
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 64 << 10
	// drainTimeout is how long requests under way may take after the end was asked for.
	drainTimeout = 10 * time.Second
)

// ServeHTTP serves h on l until ctx ends, then takes no new requests, waits up to 10 s for those under way and returns
// nil. It closes l.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
	})
	err := srv.Serve(l)
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
