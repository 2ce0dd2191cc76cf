package kds

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
)

// maxCalls bounds the unary calls, such as reports, that a zone has in progress on all its connections. gRPC reads a
// unary request, of up to MaxMessageSize, before it calls a handler. A zone makes one call after another.
const maxCalls = 8

// Named is an AuthInfo that knows the zone of the client's certificate.
type Named interface {
	// Zone returns the zone; empty without a valid certificate.
	Zone() string
}

// calls counts the calls in progress, by zone, or by connection if no certificate names the zone. The zero value is ready
// for use.
type calls struct {
	mu sync.Mutex
	of map[any]int // guarded by mu
}

func (c *calls) enter(caller any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[any]int{}
	}
	if c.of[caller] >= maxCalls {
		return false
	}
	c.of[caller]++
	return true
}

// leave reports whether it was the caller's last call.
func (c *calls) leave(caller any) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[caller]--; c.of[caller] > 0 {
		return false
	}
	delete(c.of, caller)
	return true
}

// streaming are the methods whose messages the caller's session, or a bound of its own, limits.
var streaming = func() map[string]bool {
	out := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{kdspb.KDSSyncService_ServiceDesc, kdspb.GlobalKDSService_ServiceDesc} {
		for i := range service.Streams {
			out["/"+service.ServiceName+"/"+service.Streams[i].StreamName] = true
		}
	}
	return out
}()

// FewCalls returns the option by which a gRPC server refuses the calls of a zone that has maxCalls in progress, before it
// reads their requests.
func (g *Global) FewCalls() grpc.ServerOption {
	return grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if streaming[info.FullMethodName] {
			return ctx, nil
		}
		var caller any = connectionOf(ctx)
		zone := shownZone(ctx)
		if zone != "" {
			caller = zone
		}
		if !g.calls.enter(caller) {
			if data := g.data(zone); data != nil {
				data.over.Meet(tracker.LimitCalls, "", maxCalls, 1)
			}
			return ctx, status.Errorf(codes.ResourceExhausted, "the zone has %d calls in progress, the maximum: wait for their answers", maxCalls)
		}
		context.AfterFunc(ctx, func() {
			if data := g.data(zone); g.calls.leave(caller) && data != nil {
				data.over.End(tracker.LimitCalls, "")
			}
		})
		return ctx, nil
	})
}

// shownZone returns the zone of a connection's certificate; empty if there is none.
func shownZone(ctx context.Context) string {
	from, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return ""
	}
	if named, ok := from.AuthInfo.(Named); ok {
		return named.Zone()
	}
	return ""
}
