package zone_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

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
