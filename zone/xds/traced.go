package xds

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Fields of a marshalled route table, down to its routes.
const (
	hostsOfTable protowire.Number = 2 // RouteConfiguration.virtual_hosts
	routesOfHost protowire.Number = 3 // VirtualHost.routes
)

// tracedKey is everything that traced routes depend on.
type tracedKey struct {
	routes *resource
	trace  *traceConf
}

// traced returns the route table with the sampling and tags of the proxy's MeshTrace, except for its first few routes. The
// rest of the table does not depend on them: it is neither built nor marshalled again.
func (t *target) traced(routes *resource, except int) (*resource, error) {
	if t.observed.trace == nil || routes == nil {
		return routes, nil
	}
	conf := t.observed.trace.conf
	return t.shared.traced.get(tracedKey{routes, conf}, func() (*resource, error) {
		table := routes.delta.GetResource()
		value, err := withTracing(table.GetValue(), conf.marshalled, except)
		return resourceOf(routes.name, &anypb.Any{TypeUrl: table.GetTypeUrl(), Value: value}), err
	})
}

// gatewayTrace returns the effect of a MeshTrace that the plan of a gateway contains: in the routes to its services, not
// all of them are traced. To other plans, traceRoutes adds it.
func (t *target) gatewayTrace() *tracing {
	if t.gateway == nil {
		return nil
	}
	return t.observed.trace
}

// traceRoutes adds the proxy's MeshTrace to the routes of a plan.
func (s *sender) traceRoutes(out *sending) error {
	if s.target.gateway != nil {
		return nil
	}
	var err error
	for i, routes := range out.sets[kindRoute] {
		if out.sets[kindRoute][i], err = s.target.traced(routes, 0); err != nil {
			return err
		}
	}
	return nil
}

// withTracing adds a marshalled field to each route of a marshalled table, except for the first few of each host.
func withTracing(table, field []byte, except int) ([]byte, error) {
	return withEach(table, hostsOfTable, func(host []byte) ([]byte, error) {
		left := except
		return withEach(host, routesOfHost, func(route []byte) ([]byte, error) {
			if left--; left >= 0 {
				return route, nil
			}
			return append(route[:len(route):len(route)], field...), nil // a field after the others is one of the same message
		})
	})
}

// withEach returns a marshalled message with each value of a field replaced.
func withEach(message []byte, field protowire.Number, change func([]byte) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(message)+len(message)/4)
	for len(message) > 0 {
		number, typ, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if number != field || typ != protowire.BytesType {
			out, message = append(out, message[:n]...), message[n:]
			continue
		}
		_, _, tag := protowire.ConsumeTag(message)
		value, _ := protowire.ConsumeBytes(message[tag:])
		changed, err := change(value)
		if err != nil {
			return nil, err
		}
		out, message = protowire.AppendBytes(append(out, message[:tag]...), changed), message[n:]
	}
	return out, nil
}

// marshalTracing returns the field of a route that holds sampling and tags.
func marshalTracing(tracing *routev3.Tracing) ([]byte, error) {
	if err := tracing.Validate(); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&routev3.Route{Tracing: tracing})
}
