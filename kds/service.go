package kds

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
)

// The ends of the two streams of kdspb.KDSSyncService. On globalToZone the zone sends requests and the global
// responses, on zoneToGlobal the reverse.
type (
	globalToZoneServer = grpc.BidiStreamingServer[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
	zoneToGlobalServer = grpc.BidiStreamingServer[discovery.DeltaDiscoveryResponse, discovery.DeltaDiscoveryRequest]
	globalToZoneClient = grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
	zoneToGlobalClient = grpc.BidiStreamingClient[discovery.DeltaDiscoveryResponse, discovery.DeltaDiscoveryRequest]
)

// judgedKey is the context key of a call whose caller was authenticated before its message was decoded.
type judgedKey struct{}

// judged is the result of that authentication.
type judged struct {
	zone string
	pass Pass
}

// judge is a messages.Judge for the methods that only zones may call. With the context that it returns, identify returns
// the same result.
func (g *Global) judge(ctx context.Context, _ string) (context.Context, error) {
	zone, _, pass, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	return context.WithValue(ctx, judgedKey{}, &judged{zone, pass}), nil
}
