package panics_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/panics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a log that tests can read.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func newGuard() (*panics.Guard, *lines) {
	l := &lines{}
	return panics.New(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))), l
}

// counted returns the metric by what was served.
func counted(t *testing.T, g *panics.Guard) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(g)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[labelOf(m)] = m.GetCounter().GetValue()
		}
	}
	return out
}

func labelOf(m *dto.Metric) string { return m.GetLabel()[0].GetValue() }

func TestDo(t *testing.T) {
	g, log := newGuard()
	sound := errors.New("as it is")
	if err := g.Do("a", func() error { return sound }); !errors.Is(err, sound) {
		t.Error(err)
	}
	if err := g.Do("a", func() error { panic("here") }); !errors.Is(err, panics.Err) {
		t.Error(err)
	}
	if n := counted(t, g); n["a"] != 1 || !strings.Contains(log.text(), "TestDo.func") ||
		!strings.Contains(log.text(), "reason=here") {
		t.Errorf("%v: %s", n, log.text())
	}
}

// TestWithoutGuard checks that a nil guard catches nothing, so that tests fail.
func TestWithoutGuard(t *testing.T) {
	var g *panics.Guard
	defer func() {
		if recover() != "here" {
			t.Error("it was caught")
		}
	}()
	_ = g.Do("a", func() error { panic("here") })
}

type service struct{}

// panicking returns a service whose call panics before it decodes its request, and whose stream panics after its first
// message.
func panicking() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "test", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) { panic("a call") }}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error {
				if err := s.RecvMsg(new(emptypb.Empty)); err != nil {
					return err
				}
				panic("a stream")
			}}},
	}
}

// badHandshake panics in the first handshake.
type badHandshake struct {
	credentials.TransportCredentials
	once *sync.Once
}

func (c badHandshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c.once.Do(func() { panic("a handshake") })
	return c.TransportCredentials.ServerHandshake(raw)
}

func (c badHandshake) Clone() credentials.TransportCredentials { return c }

// TestGRPC checks that the server continues after panics in calls, streams and handshakes.
func TestGRPC(t *testing.T) {
	g, _ := newGuard()
	server := grpc.NewServer(grpc.Creds(g.Credentials(badHandshake{insecure.NewCredentials(), &sync.Once{}})))
	g.Registrar("test", server).RegisterService(panicking(), &service{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 {
		err := conn.Invoke(t.Context(), "/test/Call", new(emptypb.Empty), new(emptypb.Empty), grpc.WaitForReady(true))
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "a call") {
			t.Errorf("a call: %v", err)
		}
		stream, err := conn.NewStream(t.Context(), &panicking().Streams[0], "/test/Stream")
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(new(emptypb.Empty)); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(new(emptypb.Empty)); status.Code(err) != codes.Internal {
			t.Errorf("a stream: %v", err)
		}
	}
	if n := counted(t, g); n["test"] != 4 || n["tls"] != 1 {
		t.Errorf("%v", n)
	}
}

func TestHTTP(t *testing.T) {
	g, _ := newGuard()
	on := map[string]any{"/panic": "here", "/abort": http.ErrAbortHandler}
	server := httptest.NewUnstartedServer(g.Handler("http", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := on[r.URL.Path]; reason != nil {
			panic(reason)
		}
		_, _ = io.WriteString(w, "ok")
	})))
	server.Config.ErrorLog = g.ErrorLog()
	server.Start()
	defer server.Close()
	for _, path := range []string{"/panic", "/abort", "/"} {
		resp, err := http.Get(server.URL + path) //nolint:noctx // the server is this test's
		if (err == nil) != (path == "/") {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if n := counted(t, g); n["http"] != 1 || len(n) != 1 {
		t.Errorf("%v", n)
	}
	g.ErrorLog().Print("http: panic serving 127.0.0.1:1: a callback of TLS\ngoroutine 1")
	g.ErrorLog().Print("http: TLS handshake error from 127.0.0.1:1: EOF")
	if n := counted(t, g); n["http connection"] != 1 {
		t.Errorf("%v", n)
	}
}

type badCollector struct{ desc *prometheus.Desc }

func (c badCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

func (c badCollector) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, "before")
	out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, "\xff")
}

// TestCollector checks a label from a peer that is not UTF-8: it would end the process, because registries collect in
// their own goroutines.
func TestCollector(t *testing.T) {
	g, _ := newGuard()
	r := prometheus.NewRegistry()
	r.MustRegister(g.Collector("metrics", badCollector{prometheus.NewDesc("test", "A test.", []string{"peer"}, nil)}))
	families, err := r.Gather()
	if err != nil || len(families) != 1 || counted(t, g)["metrics"] != 1 {
		t.Errorf("%v, %v, %v", families, err, counted(t, g))
	}
}
