package messages

import (
	"context"

	"google.golang.org/grpc"
)

// Judge returns an error, a gRPC status, if the caller may not call a method, given by its full name. The call
// continues with the returned context.
type Judge func(ctx context.Context, method string) (context.Context, error)

// Judged returns r with a judge in front of the methods registered through it: it judges a caller before the caller's
// message is decoded. Generated code decodes the message of a unary or server-streaming method before it calls any
// interceptor or our code. It passes on the other streams unread, so their methods judge their callers themselves.
func Judged(r grpc.ServiceRegistrar, judge Judge) grpc.ServiceRegistrar {
	return &judged{ServiceRegistrar: r, judge: judge}
}

type judged struct {
	grpc.ServiceRegistrar
	judge Judge
}

// RegisterService implements grpc.ServiceRegistrar.
func (j *judged) RegisterService(desc *grpc.ServiceDesc, service any) {
	d := *desc
	d.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		d.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: j.unary(fullMethod(&d, m.MethodName), m.Handler)}
	}
	d.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, s := range desc.Streams {
		d.Streams[i] = s
		if !s.ClientStreams {
			d.Streams[i].Handler = j.stream(fullMethod(&d, s.StreamName), s.Handler)
		}
	}
	j.ServiceRegistrar.RegisterService(&d, service)
}

func fullMethod(d *grpc.ServiceDesc, method string) string { return "/" + d.ServiceName + "/" + method }

func (j *judged) unary(method string, handle grpc.MethodHandler) grpc.MethodHandler {
	return func(service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order of arguments is gRPC's
		ctx, err := j.judge(ctx, method)
		if err != nil {
			return nil, err
		}
		return handle(service, ctx, decode, interceptor)
	}
}

func (j *judged) stream(method string, handle grpc.StreamHandler) grpc.StreamHandler {
	return func(service any, stream grpc.ServerStream) error {
		ctx, err := j.judge(stream.Context(), method)
		if err != nil {
			return err
		}
		return handle(service, &judgedStream{stream, ctx})
	}
}

// judgedStream is a stream with the context of its judge.
type judgedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *judgedStream) Context() context.Context { return s.ctx }
