// Command proxyless-grpc is the program of the guide beside it: a gRPC server without a proxy, whose listener and
// permissions for each method come from a Causeway zone, and a client for it. It answers every method, so that the
// guide can be about permissions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
)

func main() {
	listen := flag.String("listen", "",
		"serve: the `address` of an inbound of the Dataplane that GRPC_XDS_BOOTSTRAP is about")
	identity := flag.String("identity", "", "call: `folder` that causewayctl svid writes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: proxyless-grpc -listen ADDRESS\n       proxyless-grpc -identity FOLDER ADDRESS METHOD\n       proxyless-grpc xds:///NAME METHOD")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if *listen != "" {
		err = serve(ctx, *listen)
	} else {
		err = call(ctx, *identity, flag.Arg(0), flag.Arg(1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// serve answers on an address until ctx ends. All that makes it part of the mesh are the credentials and
// xds.NewGRPCServer: they read the bootstrap file that GRPC_XDS_BOOTSTRAP names.
func serve(ctx context.Context, address string) error {
	fromZone, err := xdscredentials.NewServerCredentials(
		xdscredentials.ServerOptions{FallbackCreds: refuse{insecure.NewCredentials()}})
	if err != nil {
		return err
	}
	server, err := xds.NewGRPCServer(grpc.Creds(fromZone), grpc.UnknownServiceHandler(answer),
		xds.ServingModeCallback(tell))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		server.GracefulStop()
		return <-done
	}
}

// refuse is for listeners and services without certificates, which a zone never sends: better none than plaintext.
type refuse struct {
	credentials.TransportCredentials
}

func (refuse) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the listener came without certificates")
}

func (refuse) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the service came without certificates")
}

func (r refuse) Clone() credentials.TransportCredentials { return r }

// tell reports whether the zone has given the server its listener. Until then no connection is taken.
func tell(address net.Addr, change xds.ServingModeChangeArgs) {
	fmt.Println(address, change.Mode)
	if change.Err != nil {
		fmt.Println(change.Err)
	}
}

// answer sends back each message of any method.
func answer(_ any, stream grpc.ServerStream) error {
	for {
		message := &emptypb.Empty{}
		if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}

// call invokes a method. Of xds:///NAME the zone says where the service is and as whom it may answer;
// GRPC_XDS_BOOTSTRAP names the bootstrap file. Any other address is called with the identity in a folder.
func call(ctx context.Context, folder, address, method string) error {
	fromZone, err := xdscredentials.NewClientCredentials(
		xdscredentials.ClientOptions{FallbackCreds: refuse{insecure.NewCredentials()}})
	if !strings.HasPrefix(address, "xds:") && err == nil {
		fromZone, err = fromFiles(folder)
	}
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(fromZone))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer := status.Convert(conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}))
	fmt.Println(answer.Code(), answer.Message())
	return nil
}

// fromFiles is mutual TLS with a server of the same trust domain.
func fromFiles(folder string) (credentials.TransportCredentials, error) {
	svid, err := x509svid.Load(filepath.Join(folder, "svid.pem"), filepath.Join(folder, "svid_key.pem"))
	if err != nil {
		return nil, err
	}
	domain := svid.ID.TrustDomain()
	bundle, err := x509bundle.Load(domain, filepath.Join(folder, "own_bundle.pem"))
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(tlsconfig.MTLSClientConfig(svid, bundle,
		tlsconfig.AdaptMatcher(spiffeid.MatchMemberOf(domain)))), nil
}
