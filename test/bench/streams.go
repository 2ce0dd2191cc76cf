package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// openName is the Dataplane of the real Envoy, and the service of its inbounds: httpSection and tcpSection.
	openName    = "bench-open"
	httpSection = "http-port"
	tcpSection  = "tcp-port"
	// openStreams is the number of streams through the Envoy.
	openStreams = 5
	// tick is the interval at which a stream carries something.
	tick = 50 * time.Millisecond
)

// streams are endless requests to an application, by turns through the listeners at ports: those of a real Envoy, which
// sends them by mutual TLS to an inbound listener of a real Envoy, in front of the application. Replacing a listener ends
// them.
type streams struct {
	ctx         context.Context
	application *http.Server
	port        int // of the application
	ports       []int
	open        [openStreams]atomic.Bool
	ended       atomic.Int64
}

// startApplication starts the application.
func startApplication(ctx context.Context) (*streams, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address, _ := l.Addr().(*net.TCPAddr)
	st := &streams{ctx: ctx, port: address.Port,
		application: &http.Server{Handler: http.HandlerFunc(endless), ReadHeaderTimeout: patience}}
	go func() { _ = st.application.Serve(l) }() // until close
	return st, nil
}

// freePorts returns ports of which nobody listens on any.
func freePorts(n int) (ports []int, err error) {
	for range n {
		port, err := porttest.Free()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// startEnvoy starts the Envoy of openName in front of the application, with an outbound for each reference, through which
// the streams will go. networking has more fields of its Dataplane, and bootstrap more arguments.
func (st *streams) startEnvoy(ctx context.Context, c *cluster.Cluster, s *cluster.Server, networking object,
	bootstrap []string, refs ...object) error {
	ports, err := freePorts(2 + len(refs))
	if err != nil {
		return err
	}
	inbound := func(port int, name, protocol string) object {
		return object{"port": port, "servicePort": st.port, "name": name,
			"tags": object{"kuma.io/service": openName, "kuma.io/protocol": protocol}}
	}
	all := object{"address": "127.0.0.1",
		"inbound": []any{inbound(ports[0], httpSection, "http"), inbound(ports[1], tcpSection, "tcp")}}
	maps.Copy(all, networking)
	var outbounds []any
	for i, ref := range refs {
		outbounds = append(outbounds, object{"port": ports[2+i], "backendRef": ref})
	}
	all["outbound"] = outbounds
	st.ports = append(st.ports, ports[2:]...)
	if err := s.API.Put(ctx, "/meshes/default/dataplanes/"+openName,
		object{"type": "Dataplane", "mesh": "default", "name": openName, "networking": all}); err != nil {
		return err
	}
	proxy, err := c.StartProxy(ctx, cluster.ProxyConfig{Zone: s, Mesh: "default", Dataplane: openName, Bootstrap: bootstrap})
	if err != nil {
		return err
	}
	return proxy.WaitListeners(ctx, ports...)
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
			if err := st.begin(&st.open[i], st.ports[i%len(st.ports)]); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin opens one stream, on a connection of its own.
func (st *streams) begin(open *atomic.Bool, port int) error {
	req, err := http.NewRequestWithContext(st.ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
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
