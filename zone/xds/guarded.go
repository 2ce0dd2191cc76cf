package xds

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/panics"
)

// guardedDelta and guardedSotw are streams that go-control-plane reads in its own goroutines. A panic ends the stream.
type guardedDelta struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	guard *panics.Guard
}

// Recv implements grpc.BidiStreamingServer.
func (s *guardedDelta) Recv() (m *discovery.DeltaDiscoveryRequest, err error) {
	defer s.guard.Catch(serving, &err)
	return s.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Recv()
}

type guardedSotw struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	guard *panics.Guard
}

// Recv implements grpc.BidiStreamingServer.
func (s *guardedSotw) Recv() (m *discovery.DiscoveryRequest, err error) {
	defer s.guard.Catch(serving, &err)
	return s.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Recv()
}

// endOnPanic, deferred, ends the stream if work done for it panicked.
func (s *session) endOnPanic() {
	guard := s.proxies.cfg.Panics
	if guard == nil {
		return
	}
	if reason := recover(); reason != nil {
		guard.Caught(serving, reason)
		s.endStream(panics.Err)
	}
}

// built returns the result of build for one proxy's config. build changes nothing that proxies share, so a panic in it
// affects only that proxy, which keeps its current config.
func built[T any](x *Proxies, build func() (T, error)) (out T, err error) {
	defer x.cfg.Panics.Catch(serving, &err)
	return build()
}
