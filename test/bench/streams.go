package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// openName is the Dataplane of the real Envoy, and the service of its inbound.
	openName = "bench-open"
	// openStreams is the number of streams through the Envoy.
	openStreams = 5
	// tick is the interval at which a stream carries something.
	tick = 50 * time.Millisecond
)

// streams are endless requests through a real Envoy: through its outbound listener, by mutual TLS to its own inbound
// listener, and to an application. Replacing a listener ends them.
type streams struct {
	ctx         context.Context
	application *http.Server
	url         string
	open        [openStreams]atomic.Bool
	ended       atomic.Int64
}

// startStreams starts the application and the Envoy in front of it, which sends to benchService.
func startStreams(ctx context.Context, c *cluster.Cluster, s *cluster.Server) (*streams, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	st := &streams{ctx: ctx, application: &http.Server{Handler: http.HandlerFunc(endless), ReadHeaderTimeout: patience}}
	go func() { _ = st.application.Serve(l) }() // until close
	var ports [2]int
	for i := range ports {
		if ports[i], err = porttest.Free(); err != nil {
			return st, err
		}
	}
	st.url = fmt.Sprintf("http://127.0.0.1:%d/", ports[1])
	address, _ := l.Addr().(*net.TCPAddr)
	if err := s.API.Put(ctx, "/meshes/default/dataplanes/"+openName, object{
		"type": "Dataplane", "mesh": "default", "name": openName, "networking": object{"address": "127.0.0.1",
			"inbound": []any{object{"port": ports[0], "servicePort": address.Port, "name": "http-port",
				"tags": object{"kuma.io/service": openName, "kuma.io/protocol": "http"}}},
			"outbound": []any{object{"port": ports[1], "backendRef": object{"kind": "MeshService", "name": benchService,
				"port": 80}}}},
	}); err != nil {
		return st, err
	}
	proxy, err := c.StartProxy(ctx, cluster.ProxyConfig{Zone: s, Mesh: "default", Dataplane: openName})
	if err != nil {
		return st, err
	}
	return st, proxy.WaitListeners(ctx, ports[:]...)
}

// close ends the application and with it all streams. The cluster ends the Envoy.
func (st *streams) close() { _ = st.application.Close() }

// endless answers with a byte each tick, until the client is gone.
func endless(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	for {
		_, _ = w.Write([]byte{'.'})
		if out.Flush() != nil || sleep(r.Context(), tick) != nil {
			return
		}
	}
}

// reopen opens the streams that have ended or not begun, and returns once the application answers all.
func (st *streams) reopen() error {
	return cluster.Until(st.ctx, patience, "the streams through Envoy", func(context.Context) error {
		for i := range st.open {
			if st.open[i].Load() {
				continue
			}
			if err := st.begin(&st.open[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin opens one stream, on a connection of its own.
func (st *streams) begin(open *atomic.Bool) error {
	req, err := http.NewRequestWithContext(st.ctx, http.MethodGet, st.url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) //nolint:bodyclose // its reader closes it
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return errors.Join(fmt.Errorf("want 200, got %s: %s", resp.Status, text), resp.Body.Close())
	}
	open.Store(true)
	go func() {
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		open.Store(false)
		st.ended.Add(1)
	}()
	return nil
}
