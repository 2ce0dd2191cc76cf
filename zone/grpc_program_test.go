package zone_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/zone"
)

// grpcProgram returns the guide's program, a grpc-go server.
var grpcProgram = sync.OnceValues(func() (string, error) {
	return programtest.Program(context.Background(), "proxyless-grpc")
})

// grpcServer is a running grpc-go server that reads its configuration from the zone.
type grpcServer struct {
	t *testing.T
	// dir holds the files of its identity.
	dir, log string
}

// startGRPC runs a server for a Dataplane until the test ends. It adds more to the server's environment.
func (w *world) startGRPC(dataplane, listen string, more ...string) *grpcServer {
	w.t.Helper()
	dir := w.t.TempDir()
	w.writeIdentity(dataplane, dir)
	return startGRPC(w.t, zone.GRPCBootstrapConfig{Dataplane: dataplane, XDSAddress: w.address, IdentityDir: dir,
		Refresh: time.Second / 2}, listen, more...)
}

func startGRPC(t *testing.T, cfg zone.GRPCBootstrapConfig, listen string, more ...string) *grpcServer {
	t.Helper()
	dir := t.TempDir()
	bootstrap, err := zone.GRPCBootstrap(cfg)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "grpc.json"), bootstrap, 0o600))
	program, err := grpcProgram()
	must(t, err)
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd := exec.Command(program, "-listen", listen)
	cmd.Env = append(append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+filepath.Join(dir, "grpc.json"),
		"GRPC_GO_LOG_SEVERITY_LEVEL=warning"), more...)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	s := &grpcServer{t: t, dir: cfg.IdentityDir, log: log.Name()}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.says())
		}
	})
	return s
}

const withBundleMaps = "GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE=true"

func (s *grpcServer) says() string {
	text, err := os.ReadFile(s.log)
	must(s.t, err)
	return string(text)
}

// serving waits until the server has received its listener n times.
func (s *grpcServer) serving(n int) {
	s.t.Helper()
	eventually(s.t, "the server is given its listener", func() bool { return strings.Count(s.says(), "SERVING") >= n })
}

// grpcClient returns a client connection, which is closed when the test ends.
func grpcClient(t *testing.T, certificate *tls.Certificate, port int) *grpc.ClientConn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}}
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port),
		grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	return conn
}

// invoke calls a method with headers, given as pairs of name and value.
func invoke(conn *grpc.ClientConn, method string, headers ...string) codes.Code {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, headers...)
	return grpcstatus.Code(conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}))
}

// watch starts a call of a streaming method.
func watch(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/shop.Orders/Watch")
	must(t, err)
	return stream
}

// echo sends a message and waits for its echo.
func echo(stream grpc.ClientStream) error {
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return stream.RecvMsg(&emptypb.Empty{})
}
