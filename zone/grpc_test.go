package zone_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// grpcProgramDir is removed by TestMain.
var grpcProgramDir = filepath.Join(os.TempDir(), fmt.Sprintf("causeway-grpc-%d", os.Getpid()))

// grpcProgram builds the guide's program, a grpc-go server, once.
var grpcProgram = sync.OnceValues(func() (string, error) {
	file := filepath.Join(grpcProgramDir, "server")
	build := exec.Command("go", "build", "-o", file, "../docs/proxyless-grpc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // like all programs here, so that less is compiled twice
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
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

// writeIdentity writes the same files as `causewayctl svid`.
func (w *world) writeIdentity(dataplane, dir string) {
	w.t.Helper()
	snap := w.store.Snapshot()
	dp := snap.Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: dataplane})
	svid, err := w.authorities.Issue(dp)
	must(w.t, err)
	eventually(w.t, "the zone's own trust", func() bool {
		snap = w.store.Snapshot()
		return len(identity.BundlesOf(snap, "default", resources.Home{Zone: "zone-1"}).PEM(svid.ID.TrustDomain())) > 0
	})
	bundles := identity.BundlesOf(snap, "default", resources.Home{Zone: "zone-1"})
	byDomain := map[string]json.RawMessage{}
	for _, domain := range bundles.Domains() {
		bundle, err := x509bundle.Parse(domain, bundles.PEM(domain))
		must(w.t, err)
		byDomain[domain.Name()], err = spiffebundle.FromX509Bundle(bundle).Marshal()
		must(w.t, err)
	}
	bundleMap, err := json.Marshal(map[string]any{"trust_domains": byDomain})
	must(w.t, err)
	for name, content := range map[string][]byte{
		"svid.pem": svid.CertificatePEM, "svid_key.pem": svid.KeyPEM,
		"own_bundle.pem": bundles.PEM(svid.ID.TrustDomain()), "bundle_map.json": bundleMap,
	} {
		must(w.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
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

const allowAliceOrders = `{type: MeshTrafficPermission, mesh: default, name: orders, spec: {targetRef: {kind: Dataplane, labels: {app: orders}}, rules: [{default: {
  allow: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /shop.Orders}}]}}]}}`

// TestGRPCServerWithoutProxy: a grpc-go server reads its listener and its permissions, by method, from the zone.
// Changes reach it while its connections and calls continue.
func TestGRPCServerWithoutProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: orders, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", port))
	server := w.startGRPC("orders", fmt.Sprintf("127.0.0.1:%d", port), withBundleMaps)
	server.serving(1)
	alice, bob := grpcClient(t, w.certificate("alice"), port), grpcClient(t, w.certificate("bob"), port)
	if got := invoke(alice, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Fatalf("without a permission alice gets %s", got)
	}
	if err := echo(watch(t, alice)); grpcstatus.Code(err) != codes.PermissionDenied {
		t.Errorf("a stream gets %v", err)
	}

	w.apply(allowAliceOrders)
	eventually(t, "alice is allowed", func() bool { return invoke(alice, "/shop.Orders/Put") == codes.OK })
	for _, method := range []string{"/shop.OrdersAdmin/Put", "/grpc.health.v1.Health/Check", "/a/../shop.Orders/Put",
		"//shop.Orders/Put"} {
		if got := invoke(alice, method); got != codes.PermissionDenied {
			t.Errorf("%s: alice gets %s", method, got)
		}
	}
	if got := invoke(bob, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Errorf("bob gets %s", got)
	}

	// A call in progress, and the connection under it, outlive the change that ends alice's access.
	stream := watch(t, alice)
	must(t, echo(stream))
	w.apply(strings.ReplaceAll(allowAliceOrders, "workload/alice", "workload/bob"))
	eventually(t, "bob is allowed", func() bool { return invoke(bob, "/shop.Orders/Put") == codes.OK })
	if got := invoke(alice, "/shop.Orders/Put"); got != codes.PermissionDenied {
		t.Errorf("alice still gets %s", got)
	}
	must(t, echo(stream))
	must(t, stream.CloseSend())
	if n := strings.Count(server.says(), "SERVING"); n != 1 {
		t.Errorf("the listener changed %d times", n)
	}
	if plaintext(port) {
		t.Error("plaintext is answered")
	}
}

// TestGRPCServerTrust: each trust domain's CA is trusted for that domain only, and new files take effect without a
// restart. Without bundle maps, only the server's own trust domain is trusted.
func TestGRPCServerTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, plain := freePort(t), freePort(t)
	for name, port := range map[string]int{"orders": port, "plain": plain} {
		w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: %s, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", name, port))
	}
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: anyone, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`)
	server := w.startGRPC("orders", fmt.Sprintf(":%d", port), withBundleMaps)
	server.serving(1)
	w.startGRPC("plain", fmt.Sprintf("127.0.0.1:%d", plain), "GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE=false").serving(1)
	other, own := newTestCA(t), w.certificate("alice")
	foreign := other.certificate("spiffe://other.mesh/workload/carol")
	knows := func(port int, certificate *tls.Certificate) codes.Code {
		return invoke(grpcClient(t, certificate, port), "/shop.Orders/Put")
	}
	for _, port := range []int{port, plain} {
		eventually(t, "the own trust domain is let in", func() bool { return knows(port, own) == codes.OK })
		if got := knows(port, foreign); got != codes.Unavailable {
			t.Errorf("a stranger gets %s", got)
		}
	}

	// The mesh now trusts another domain: causewayctl svid --watch writes the files again.
	before := servedBy(t, own, port)
	quoted, err := json.Marshal(other.pem())
	must(t, err)
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: other, spec: {trustDomain: other.mesh, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	w.writeIdentity("orders", server.dir)
	eventually(t, "the other trust domain is let in", func() bool { return knows(port, foreign) == codes.OK })
	eventually(t, "the new certificate is shown", func() bool { return servedBy(t, own, port) != before })
	for name, certificate := range map[string]*tls.Certificate{
		"a CA that speaks for another domain": other.certificate("spiffe://default.zone-1.mesh.local/workload/alice"),
		"two URI SANs": other.certificate("spiffe://other.mesh/workload/carol",
			"spiffe://other.mesh/workload/dave"),
		"no URI SAN":  other.certificate(),
		"no workload": other.certificate("spiffe://other.mesh/"),
	} {
		if got := knows(port, certificate); got == codes.OK {
			t.Errorf("%s: let in", name)
		}
	}
	if got := knows(plain, foreign); got != codes.Unavailable {
		t.Errorf("without bundle maps a stranger gets %s", got)
	}
}

// TestGRPCServerShowsItsSVIDToTheZone: off loopback, the zone authenticates itself with its certificate, and gRPC
// programs with their own.
func TestGRPCServerShowsItsSVIDToTheZone(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.stop()
	z.cfg.XDSAddress = fmt.Sprintf("0.0.0.0:%d", freePort(t))
	z.start()
	ports := []int{freePort(t), freePort(t)}
	for _, name := range []string{"orders", "other"} {
		z.apply("dataplanes/"+name, fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": %q, "networking": {"address": "127.0.0.1",
			"inbound": [{"name": "a", "port": %d, "protocol": "grpc"}, {"name": "b", "port": %d, "protocol": "grpc"}]}}`, name, ports[0], ports[1]))
	}
	_, xdsPort, _ := strings.Cut(z.cfg.XDSAddress, ":")
	cfg := zone.GRPCBootstrapConfig{
		Dataplane: "orders", XDSAddress: "grpcs://127.0.0.1:" + xdsPort,
		XDSCA: filepath.Join(z.cfg.DataDir, "tls", "ca.crt"), IdentityDir: t.TempDir(),
	}
	z.writeIdentity("other", cfg.IdentityDir)
	stranger := startGRPC(t, cfg, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	eventually(t, "another's identity is refused",
		func() bool { return strings.Contains(stranger.says(), "PermissionDenied") })
	cfg.IdentityDir = t.TempDir()
	z.writeIdentity("orders", cfg.IdentityDir)
	startGRPC(t, cfg, fmt.Sprintf("127.0.0.1:%d", ports[1])).serving(1)
	if strings.Contains(stranger.says(), " SERVING") {
		t.Error("it serves with another's identity")
	}
}

// writeIdentity writes the certificate and the key.
func (z *runningZone) writeIdentity(dataplane, dir string) {
	z.t.Helper()
	svid, _ := z.svid(dataplane)
	chain, key, err := svid.Marshal()
	must(z.t, err)
	must(z.t, os.WriteFile(filepath.Join(dir, "svid.pem"), chain, 0o600))
	must(z.t, os.WriteFile(filepath.Join(dir, "svid_key.pem"), key, 0o600))
}

// TestGRPCClientWithoutProxy: a grpc-go client finds a service from the outbounds of its Dataplane in the zone, and
// accepts only servers with the service's identities.
func TestGRPCClientWithoutProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: orders, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", port))
	service := fmt.Sprintf(`{type: MeshService, mesh: default, name: orders, spec: {selector: {dataplaneLabels: {matchLabels: {app: orders}}}, ports: [{name: grpc, port: 80, targetPort: %d, appProtocol: grpc}]}}`, port)
	w.apply(service)
	w.apply(`{type: Dataplane, mesh: default, name: alice, networking: {address: 127.0.0.1, inbound: [{port: 1, protocol: http}],
  outbound: [{port: 10001, backendRef: {kind: MeshService, name: orders}}]}}`)
	w.apply(allowAliceOrders)
	w.startGRPC("orders", fmt.Sprintf("127.0.0.1:%d", port), withBundleMaps).serving(1)
	call := w.grpcCaller("alice")
	const name = "xds:///kri_msvc_default_zone-1__orders_grpc"
	eventually(t, "alice reads", func() bool { return call(name, "/shop.Orders/Get") == "OK" })
	if got := call(name, "/shop.Admin/Get"); got != "PermissionDenied" {
		t.Errorf("what is not allowed gives %s", got)
	}
	w.apply(strings.Replace(service, "spec: {",
		`spec: {identities: [{type: SpiffeID, value: "spiffe://default.zone-1.mesh.local/workload/somebody"}], `, 1))
	eventually(t, "the server is not the service any more",
		func() bool { return call(name, "/shop.Orders/Get") == "Unavailable" })
}

// TestGRPCClientTellsTheServerName: the client sends the server name, by which ingresses of other zones route.
func TestGRPCClientTellsTheServerName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan string, 1)
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			select {
			case asked <- hello.ServerName:
			default:
			}
			return nil, errors.New("enough")
		}})
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	port := listener.Addr().(*net.TCPAddr).Port
	w.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: orders, labels: {app: orders}, networking: {address: 127.0.0.1, inbound: [{name: grpc, port: %d, protocol: grpc}]}}", port))
	w.apply(fmt.Sprintf(`{type: MeshService, mesh: default, name: orders, spec: {selector: {dataplaneLabels: {matchLabels: {app: orders}}}, ports: [{name: grpc, port: 80, targetPort: %d, appProtocol: grpc}]}}`, port))
	w.apply(`{type: Dataplane, mesh: default, name: alice, networking: {address: 127.0.0.1, inbound: [{port: 1, protocol: http}],
  outbound: [{port: 10001, backendRef: {kind: MeshService, name: orders}}]}}`)
	if got := w.grpcCaller("alice", "GRPC_EXPERIMENTAL_XDS_SNI=true")("xds:///kri_msvc_default_zone-1__orders_grpc",
		"/a/b"); got != "Unavailable" {
		t.Errorf("got %s", got)
	}
	select {
	case got := <-asked:
		if got != "sni.msvc.default.zone-1.orders.grpc" {
			t.Errorf("it asked for %q", got)
		}
	default:
		t.Error("it did not call")
	}
}

// grpcCaller returns a function that calls a method as a Dataplane, in a new process each time, and returns the status.
func (w *world) grpcCaller(dataplane string, more ...string) func(address, method string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	w.writeIdentity(dataplane, dir)
	bootstrap, err := zone.GRPCBootstrap(zone.GRPCBootstrapConfig{Dataplane: dataplane, XDSAddress: w.address,
		IdentityDir: dir})
	must(w.t, err)
	file := filepath.Join(dir, "grpc.json")
	must(w.t, os.WriteFile(file, bootstrap, 0o600))
	program, err := grpcProgram()
	must(w.t, err)
	return func(address, method string) string {
		cmd := exec.Command(program, address, method)
		cmd.Env = append(append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+file, withBundleMaps), more...)
		out, err := cmd.CombinedOutput()
		must(w.t, err)
		w.t.Logf("%s %s: %s", address, method, out)
		code, _, _ := strings.Cut(string(out), " ")
		return code
	}
}

// servedBy returns the serial number of the certificate that a server presents.
func servedBy(t *testing.T, certificate *tls.Certificate, port int) string {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"h2"},
	})
	must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
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
