package panics

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// Registrar returns r with a guard around every method that is registered through it, including the decoding of the
// request.
func (g *Guard) Registrar(serving string, r grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	if g == nil {
		return r
	}
	return &registrar{ServiceRegistrar: r, guard: g, serving: serving}
}

type registrar struct {
	grpc.ServiceRegistrar
	guard   *Guard
	serving string
}

// RegisterService implements grpc.ServiceRegistrar.
func (r *registrar) RegisterService(desc *grpc.ServiceDesc, service any) {
	guarded := *desc
	guarded.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		guarded.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: r.unary(m.Handler)}
	}
	guarded.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, s := range desc.Streams {
		guarded.Streams[i] = s
		guarded.Streams[i].Handler = r.stream(s.Handler)
	}
	r.ServiceRegistrar.RegisterService(&guarded, service)
}

func (r *registrar) unary(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (out any, err error) { //nolint:revive // the order of arguments is gRPC's
		err = r.guard.Do(r.serving, func() error {
			out, err = handle(service, ctx, decode, interceptor)
			return err
		})
		return out, internal(err)
	}
}

func (r *registrar) stream(handle grpc.StreamHandler) grpc.StreamHandler {
	return func(service any, stream grpc.ServerStream) error {
		return internal(r.guard.Do(r.serving, func() error { return handle(service, stream) }))
	}
}

// internal returns the status that a peer receives for a panic.
func internal(err error) error {
	if err == Err { //nolint:errorlint // what wraps it has its own code
		return status.Error(codes.Internal, err.Error())
	}
	return err
}

// Credentials returns c with guarded handshakes: gRPC runs them, and the callbacks that they call, in goroutines of its
// own.
func (g *Guard) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	if g == nil {
		return c
	}
	return &guarded{TransportCredentials: c, guard: g}
}

type guarded struct {
	credentials.TransportCredentials
	guard *Guard
}

const handshakes = "tls"

// ServerHandshake implements credentials.TransportCredentials.
func (c *guarded) ServerHandshake(raw net.Conn) (conn net.Conn, info credentials.AuthInfo, err error) {
	defer c.guard.Catch(handshakes, &err)
	return c.TransportCredentials.ServerHandshake(raw)
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *guarded) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (conn net.Conn,
	info credentials.AuthInfo, err error) {
	defer c.guard.Catch(handshakes, &err)
	return c.TransportCredentials.ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (c *guarded) Clone() credentials.TransportCredentials {
	return &guarded{TransportCredentials: c.TransportCredentials.Clone(), guard: c.guard}
}
