package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/panics"
)

const (
	// readHeaderTimeout also bounds the TLS handshake.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 60 * time.Second
	// writeTimeout bounds a whole response, so that a slow reader cannot hold one for ever. It is longer than any wait
	// for a response.
	writeTimeout   = 3 * time.Minute
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 32 << 10
	// drainTimeout bounds requests in progress after the server is told to stop.
	drainTimeout = 10 * time.Second
)

// ServeHTTP serves h on l until ctx ends, then accepts no new requests, waits up to 10 s for those in progress and
// returns nil. It closes l. A handler whose requests wait for something has a method Drain, which is called when ctx
// ends and must end these waits. A panic ends its connection and is reported to guard.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler, guard *panics.Guard) error {
	srv := &http.Server{
		Handler: guard.Handler("http", h), ErrorLog: guard.ErrorLog(), ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: ofConnection,
	}
	if waits, ok := h.(interface{ Drain() }); ok {
		srv.RegisterOnShutdown(waits.Drain)
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

// ofConnection implements http.Server.ConnContext.
func ofConnection(ctx context.Context, conn net.Conn) context.Context {
	return withPeerCheck(withGuest(ctx, conn), conn)
}
