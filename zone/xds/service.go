package xds

import (
	"context"
	"errors"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/panics"
)

// aggregated is the type by which go-control-plane names a stream of all types.
const aggregated = ""

// Service serves ADS to the proxies.
type Service struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	ctx       context.Context
	proxies   *Proxies
	admission *Admission
}

// NewService returns the service. Its streams end when ctx does, so that the server can drain. Without an admission, it
// believes every client.
func NewService(ctx context.Context, proxies *Proxies, admission *Admission) *Service {
	return &Service{ctx: ctx, proxies: proxies, admission: admission}
}

// Register adds the service to a gRPC server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// DeltaAggregatedResources is the incremental stream.
func (s *Service) DeltaAggregatedResources(
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.serve(stream.Context(), func(ctx context.Context, session *session) error {
		return delta.NewServer(ctx, session, session).DeltaStreamHandler(&guardedDelta{stream, s.proxies.cfg.Panics},
			aggregated)
	})
}

// StreamAggregatedResources is the state-of-the-world stream.
func (s *Service) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.serve(stream.Context(), func(ctx context.Context, session *session) error {
		return sotw.NewServer(ctx, session, session, sotw.WithOrderedADS()).StreamHandler(&guardedSotw{stream,
			s.proxies.cfg.Panics}, aggregated)
	})
}

// serve runs a stream until its peer ends it, its credential is no longer valid, or the server drains.
func (s *Service) serve(of context.Context, handle func(context.Context, *session) error) error {
	pass, err := s.admission.admit(of)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(s.ctx)
	defer end(nil)
	session := newSession(s.proxies)
	session.pass, session.endStream, session.contexts = pass, end, [2]context.Context{of, ctx}
	pass.open(end)
	s.proxies.metrics.streams.Inc()
	defer func() {
		pass.close()
		session.end()
		s.proxies.metrics.streams.Dec()
	}()
	err = handle(ctx, session)
	if err != nil || ctx.Err() == nil {
		return err
	}
	if err := endedBy(context.Cause(ctx)); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), panics.Err) {
		return status.Error(codes.Internal, panics.Err.Error())
	}
	return status.Error(codes.Unavailable, "the zone is shutting down")
}
