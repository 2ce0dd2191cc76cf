package main

import (
	"context"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
)

// The types that a proxy requests.
const (
	clusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	extensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// proxies are simulated Envoys, each with its own connection.
type proxies struct {
	*crowd
	marks    *marks
	ready    []atomic.Bool // proxies with listeners and their filters
	messages atomic.Int64
}

// connectProxies opens all connections at once. They run until close.
func connectProxies(ctx context.Context, xds string, n int, m *marks) *proxies {
	p := &proxies{marks: m, ready: make([]atomic.Bool, n)}
	p.crowd = newCrowd(ctx, "proxy", n, func(ctx context.Context, i int) error { return p.run(ctx, xds, i) })
	return p
}

// waitReady returns once every proxy has its listeners and their filters.
func (p *proxies) waitReady(within time.Duration) error {
	return p.await(within, func(i int) bool { return p.ready[i].Load() })
}

func (p *proxies) run(ctx context.Context, xds string, i int) error {
	conn, err := dial(xds)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &streamDesc,
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources")
	if err != nil {
		return err
	}
	node := &corev3.Node{Id: "default." + dataplaneName(i), Cluster: "bench"}
	for _, t := range []string{clusterType, listenerType} {
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t,
			ResourceNamesSubscribe: []string{"*"}}); err != nil {
			return err
		}
	}
	return p.follow(stream, i)
}

func (p *proxies) follow(stream grpc.ClientStream, i int) error {
	asked := map[string]bool{}
	for {
		var frame []byte
		if err := stream.RecvMsg(&frame); err != nil {
			return err
		}
		p.messages.Add(1)
		r := readResponse(frame)
		p.marks.saw(i, frame)
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: r.typeURL,
			ResponseNonce: r.nonce}); err != nil {
			return err
		}
		switch r.typeURL {
		case extensionType:
			p.ready[i].Store(true)
		case listenerType:
			var names []string
			for _, l := range r.resources {
				for _, name := range discovered(l) {
					if !asked[name] {
						asked[name] = true
						names = append(names, name)
					}
				}
			}
			if len(names) == 0 {
				continue
			}
			if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: extensionType,
				ResourceNamesSubscribe: names}); err != nil {
				return err
			}
		}
	}
}
