package messages_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/messages"
)

// countingCodec counts the messages that the server decodes.
type countingCodec struct {
	encoding.CodecV2
	decoded atomic.Int32
}

func (c *countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	c.decoded.Add(1)
	return c.CodecV2.Unmarshal(data, v)
}

// TestCallersAreJudgedBeforeTheirMessagesAreDecoded calls a unary and a server-streaming method of generated code.
func TestCallersAreJudgedBeforeTheirMessagesAreDecoded(t *testing.T) {
	codec := &countingCodec{CodecV2: messages.Codec()}
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec))
	var asked []string
	judge := func(ctx context.Context, method string) (context.Context, error) {
		asked = append(asked, method)
		md, _ := metadata.FromIncomingContext(ctx)
		if len(md.Get("let-in")) == 0 {
			return nil, status.Error(codes.PermissionDenied, "judged")
		}
		return ctx, nil
	}
	healthpb.RegisterHealthServer(messages.Judged(server, judge), health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := healthpb.NewHealthClient(conn)
	check := func(ctx context.Context) error {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	watch := func(ctx context.Context) error {
		stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	for method, call := range map[string]func(context.Context) error{
		healthpb.Health_Check_FullMethodName: check, healthpb.Health_Watch_FullMethodName: watch,
	} {
		t.Run(method, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			codec.decoded.Store(0)
			asked = nil
			if err := call(ctx); status.Code(err) != codes.PermissionDenied || codec.decoded.Load() != 0 {
				t.Errorf("refused: %v, after %d messages were decoded", err, codec.decoded.Load())
			}
			if err := call(metadata.AppendToOutgoingContext(ctx, "let-in", "yes")); err != nil || codec.decoded.Load() != 1 {
				t.Errorf("let in: %v, after %d messages were decoded", err, codec.decoded.Load())
			}
			if len(asked) != 2 || asked[0] != method || asked[1] != method {
				t.Errorf("the judge was asked about %v", asked)
			}
		})
	}
}
