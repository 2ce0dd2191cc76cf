package main

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// The types that a proxy requests.
const (
	clusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType     = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	extensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	endpointType  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// proxies are simulated Envoys, each with its own connection.
type proxies struct {
	*crowd
	marks    *marks
	ready    []atomic.Bool // proxies with listeners and their filters
	messages atomic.Int64
	bytes    atomic.Int64 // of the messages
	// again counts connections that ended before their proxy had started.
	again atomic.Int64
	// sending is what proxies that send do beside.
	sending *sendingOptions
	// listeners is the number of listeners received.
	listeners atomic.Int64
	// awaited is the change that carries no mark; nil for none.
	awaited atomic.Pointer[awaited]
}

// connectProxies opens all connections at once. They run until close.
func connectProxies(ctx context.Context, xds string, n int, m *marks) *proxies {
	p := &proxies{marks: m, ready: make([]atomic.Bool, n)}
	p.start(ctx, xds)
	return p
}

// sendingOptions describes proxies that send.
type sendingOptions struct {
	// metadata are more fields of their nodes.
	metadata map[string]*structpb.Value
	// endpoints means that they request the endpoints of their clusters.
	endpoints bool
	// by is the type with which they are ready; filters if it is empty.
	by string
}

// connectSending is connectProxies for proxies that send: they also request their routes.
func connectSending(ctx context.Context, xds string, n int, m *marks, o sendingOptions) *proxies {
	p := &proxies{marks: m, ready: make([]atomic.Bool, n), sending: &o}
	p.start(ctx, xds)
	return p
}

func (p *proxies) start(ctx context.Context, xds string) {
	p.crowd = newCrowd(ctx, "proxy", len(p.ready), func(ctx context.Context, i int) error { return p.stay(ctx, xds, i) })
}

// waitReady returns once every proxy has its listeners and their filters.
func (p *proxies) waitReady() error {
	return p.await(patience, func(i int) bool { return p.ready[i].Load() })
}

// stay reconnects a proxy until it has started, as Envoy does: on a busy machine, a server may close silent connections
// while others wait.
func (p *proxies) stay(ctx context.Context, xds string, i int) error {
	for {
		err := p.run(ctx, xds, i)
		if p.ready[i].Load() || ctx.Err() != nil {
			return err
		}
		p.again.Add(1)
		if err := sleep(ctx, rand.N(againWithin)); err != nil {
			return err
		}
	}
}

// againWithin is the longest pause before a proxy reconnects.
const againWithin = 500 * time.Millisecond

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
	// It has an admin interface, without which no MeshMetric shows its metrics.
	node := &corev3.Node{Id: "default." + dataplaneName(i), Cluster: "bench", Metadata: &structpb.Struct{
		Fields: map[string]*structpb.Value{"causeway.io/admin": structpb.NewNumberValue(9901)}}}
	if p.sending != nil {
		maps.Copy(node.Metadata.Fields, p.sending.metadata)
	}
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
		p.bytes.Add(int64(len(frame)))
		r := readResponse(frame)
		p.marks.saw(i, frame)
		p.sawSign(i, frame)
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: r.typeURL,
			ResponseNonce: r.nonce}); err != nil {
			return err
		}
		if r.typeURL == p.readyBy() {
			p.ready[i].Store(true)
		}
		if r.typeURL == listenerType {
			p.listeners.Add(int64(len(r.resources)))
		}
		if err := p.askFor(stream, &r, asked); err != nil {
			return err
		}
	}
}

// readyBy returns the type with which a proxy has its listeners and what they need.
func (p *proxies) readyBy() string {
	if p.sending == nil {
		return extensionType
	}
	return cmp.Or(p.sending.by, extensionType)
}

// askFor requests what listeners and clusters leave to discovery and was not requested before.
func (p *proxies) askFor(stream grpc.ClientStream, r *response, asked map[string]bool) error {
	names := map[string][]string{}
	ask := func(typeURL, name string) {
		if !asked[typeURL+name] {
			asked[typeURL+name] = true
			names[typeURL] = append(names[typeURL], name)
		}
	}
	switch {
	case r.typeURL == listenerType:
		for _, l := range r.resources {
			filters, routes := discovered(l)
			for _, name := range filters {
				ask(extensionType, name)
			}
			for _, name := range routes {
				if p.sending != nil {
					ask(routeType, name)
				}
			}
		}
	case r.typeURL == clusterType && p.sending != nil && p.sending.endpoints:
		for _, c := range r.resources {
			if name := endpointsOf(c); name != "" {
				ask(endpointType, name)
			}
		}
	}
	for typeURL, list := range names {
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: typeURL,
			ResourceNamesSubscribe: list}); err != nil {
			return err
		}
	}
	return nil
}
