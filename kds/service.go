package kds

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// The services are declared by hand because they carry Envoy's discovery messages, whose .proto sources are not in this
// repository. Source: Kuma's wire format, "Services".
const (
	syncServiceName   = "kuma.mesh.v1alpha1.KDSSyncService"
	globalServiceName = "kuma.mesh.v1alpha1.GlobalKDSService"

	methodGlobalToZone = "GlobalToZoneSync"
	methodZoneToGlobal = "ZoneToGlobalSync"
	methodHealthCheck  = "HealthCheck"
)

// globalToZoneServer is the global's end of GlobalToZoneSync.
type globalToZoneServer = grpc.BidiStreamingServer[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]

// zoneToGlobalServer is the global's end of ZoneToGlobalSync: the zone sends responses, the global requests.
type zoneToGlobalServer = grpc.BidiStreamingServer[discovery.DeltaDiscoveryResponse, discovery.DeltaDiscoveryRequest]

// globalToZoneClient is the zone's end of GlobalToZoneSync.
type globalToZoneClient = grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]

// zoneToGlobalClient is the zone's end of ZoneToGlobalSync.
type zoneToGlobalClient = grpc.BidiStreamingClient[discovery.DeltaDiscoveryResponse, discovery.DeltaDiscoveryRequest]

// syncServer implements KDSSyncService.
type syncServer interface {
	GlobalToZoneSync(globalToZoneServer) error
	ZoneToGlobalSync(zoneToGlobalServer) error
}

// controlServer implements GlobalKDSService. Its three streams are reverse calls, by which the global can query a
// zone's proxies. HoldAdminStream keeps one open and sends nothing.
type controlServer interface {
	HealthCheck(context.Context, *meshpb.ZoneHealthCheckRequest) (*meshpb.ZoneHealthCheckResponse, error)
	HoldAdminStream(grpc.ServerStream) error
}

var syncServiceDesc = grpc.ServiceDesc{
	ServiceName: syncServiceName,
	HandlerType: (*syncServer)(nil),
	Streams: []grpc.StreamDesc{
		{
			StreamName: methodGlobalToZone, ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, stream grpc.ServerStream) error {
				return srv.(syncServer).GlobalToZoneSync(&grpc.GenericServerStream[discovery.DeltaDiscoveryRequest,
					discovery.DeltaDiscoveryResponse]{ServerStream: stream})
			},
		},
		{
			StreamName: methodZoneToGlobal, ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, stream grpc.ServerStream) error {
				return srv.(syncServer).ZoneToGlobalSync(&grpc.GenericServerStream[discovery.DeltaDiscoveryResponse,
					discovery.DeltaDiscoveryRequest]{ServerStream: stream})
			},
		},
	},
}

var globalServiceDesc = grpc.ServiceDesc{
	ServiceName: globalServiceName,
	HandlerType: (*controlServer)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: methodHealthCheck, Handler: handleHealthCheck}},
	Streams: []grpc.StreamDesc{
		{StreamName: "StreamXDSConfigs", Handler: handleAdminStream, ServerStreams: true, ClientStreams: true},
		{StreamName: "StreamStats", Handler: handleAdminStream, ServerStreams: true, ClientStreams: true},
		{StreamName: "StreamClusters", Handler: handleAdminStream, ServerStreams: true, ClientStreams: true},
	},
}

//nolint:revive // the order of arguments is gRPC's
func handleHealthCheck(srv any, ctx context.Context, decode func(any) error,
	interceptor grpc.UnaryServerInterceptor) (any, error) {
	ctx, err := judgedBy(srv, ctx)
	if err != nil {
		return nil, err
	}
	in := new(meshpb.ZoneHealthCheckRequest)
	if err := decode(in); err != nil {
		return nil, err
	}
	call := func(ctx context.Context, req any) (any, error) {
		return srv.(controlServer).HealthCheck(ctx, req.(*meshpb.ZoneHealthCheckRequest))
	}
	if interceptor == nil {
		return call(ctx, in)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: fullMethod(globalServiceName, methodHealthCheck)}
	return interceptor(ctx, in, info, call)
}

func handleAdminStream(srv any, stream grpc.ServerStream) error {
	return srv.(controlServer).HoldAdminStream(stream)
}

func fullMethod(service, method string) string { return "/" + service + "/" + method }

// openGlobalToZone opens the stream on which the zone subscribes and the global sends.
func openGlobalToZone(ctx context.Context, conn grpc.ClientConnInterface) (globalToZoneClient, error) {
	stream, err := conn.NewStream(ctx, &syncServiceDesc.Streams[0], fullMethod(syncServiceName, methodGlobalToZone))
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[discovery.DeltaDiscoveryRequest,
		discovery.DeltaDiscoveryResponse]{ClientStream: stream}, nil
}

// openZoneToGlobal opens the stream on which the global subscribes and the zone sends.
func openZoneToGlobal(ctx context.Context, conn grpc.ClientConnInterface) (zoneToGlobalClient, error) {
	stream, err := conn.NewStream(ctx, &syncServiceDesc.Streams[1], fullMethod(syncServiceName, methodZoneToGlobal))
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[discovery.DeltaDiscoveryResponse,
		discovery.DeltaDiscoveryRequest]{ClientStream: stream}, nil
}

// healthCheck calls HealthCheck.
func healthCheck(ctx context.Context, conn grpc.ClientConnInterface,
	opts ...grpc.CallOption) (*meshpb.ZoneHealthCheckResponse, error) {
	out := new(meshpb.ZoneHealthCheckResponse)
	err := conn.Invoke(ctx, fullMethod(globalServiceName, methodHealthCheck), &meshpb.ZoneHealthCheckRequest{},
		out, opts...)
	return out, err
}
