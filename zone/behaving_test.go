package zone_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

var lastID atomic.Int64

func newID() string { return strconv.FormatInt(lastID.Add(1), 10) }

// attempts counts the attempts of a request, by its ID, at all endpoints.
var attempts sync.Map

func attempt(id string) int64 {
	n, _ := attempts.LoadOrStore(id, new(atomic.Int64))
	return n.(*atomic.Int64).Add(1)
}

// slow is how long something that hangs takes to answer.
const slow = 500 * time.Millisecond

// behaving runs an application that does what it is asked: /once fails at the first attempt of a request, /bad at the
// endpoint c, /sick always, /hang answers late. Everything else is answered with the name.
func behaving(t *testing.T, name string) int {
	t.Helper()
	late := func(r *http.Request) {
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.FormValue("status"))
		switch {
		case r.URL.Path == "/hang":
			late(r)
		case r.URL.Path == "/once" && attempt(r.Header.Get("x-id")) == 1:
			if r.FormValue("hang") != "" {
				late(r)
				code = http.StatusServiceUnavailable
			}
			wait := r.FormValue("wait")
			if wait == "unix" {
				wait = strconv.FormatInt(time.Now().Unix()+2, 10)
			}
			if wait != "" {
				w.Header().Set("x-wait", wait)
			}
			w.WriteHeader(code)
			return
		case r.URL.Path == "/bad" && name == "c":
			w.WriteHeader(code)
			return
		case r.URL.Path == "/sick":
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// rawGRPC is a gRPC server that does what the header x-do of a call says, and remembers the authorities of health
// checks.
type rawGRPC struct {
	port    int
	mu      sync.Mutex
	checked map[string]time.Time
}

func newRawGRPC(t *testing.T) *rawGRPC {
	t.Helper()
	g := &rawGRPC{checked: map[string]time.Time{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g.port = listener.Addr().(*net.TCPAddr).Port
	states := health.NewServer()
	states.SetServingStatus("s", healthgrpc.HealthCheckResponse_SERVING)
	server := grpc.NewServer(grpc.UnknownServiceHandler(g.serve), grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		g.mu.Lock()
		for _, authority := range md.Get(":authority") {
			g.checked[authority] = time.Now()
		}
		g.mu.Unlock()
		return next(ctx, request)
	}))
	healthgrpc.RegisterHealthServer(server, states)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); must(t, <-done) })
	return g
}

// checkedSince reports whether a health check came with an authority in the last moments.
func (g *rawGRPC) checkedSince(authority string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.checked[authority]) < slow
}

func (g *rawGRPC) serve(_ any, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	get := func(name string) string {
		if values := md.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	late := func() {
		select {
		case <-time.After(slow):
		case <-stream.Context().Done():
		}
	}
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	first := attempt(get("x-id")) == 1
	switch do := get("x-do"); {
	case do == "hang":
		late()
	case do == "hang-once" && first:
		late()
		return grpcstatus.Error(codes.Internal, "late")
	case do == "once" && first, do == "once-missing" && first:
		stream.SetTrailer(metadata.Pairs("x-wait", "1"))
		if do == "once" {
			return grpcstatus.Error(codes.Unavailable, "once")
		}
		return grpcstatus.Error(codes.NotFound, "once")
	}
	return stream.SendMsg(&emptypb.Empty{})
}

// call makes a call by an outbound, with headers.
func (g *rawGRPC) call(port int, headers ...string) error {
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return conn.Invoke(metadata.AppendToOutgoingContext(ctx, headers...), "/test.Calls/Do", &emptypb.Empty{}, &emptypb.Empty{})
}
