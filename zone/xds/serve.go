package xds

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/causeway-mesh/causeway/server"
)

const (
	// A proxy that does not answer a ping is taken for dead.
	pingAfter, pingTimeout = time.Minute, 20 * time.Second
	// leastPing is how often proxies may ping.
	leastPing = 5 * time.Second
	// maxRequest is more than any proxy's list of names and versions.
	maxRequest = 4 << 20
	// window is how much a proxy may send before it is read, in bytes.
	window = 256 << 10
	// maxStreams is how many streams a connection may have; a proxy needs one, and one for the log of each inbound.
	maxStreams = 128
	// maxHeaders bounds the metadata of a stream, in bytes: a token fits many times.
	maxHeaders = 16 << 10
	// handshakeTimeout is how long a connection may take to TLS and HTTP/2; one that sends little ends sooner: server.Guest.
	handshakeTimeout = time.Minute
	// drainTimeout is how long streams may take to end when the server is asked to.
	drainTimeout = 5 * time.Second
)

// Registrar is a service that adds itself to a gRPC server.
type Registrar interface {
	Register(grpc.ServiceRegistrar)
}

// Serve serves ADS on l until ctx ends, then ends the streams and returns nil. It closes l. Without a TLS config it is plaintext,
// which is for loopback. Others are further services for proxies, which see to who calls them by themselves.
func Serve(ctx context.Context, l net.Listener, config *tls.Config, proxies *Proxies, admission *Admission, others ...Registrar) error {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.WaitForHandlers(true),
		// Fixed windows: gRPC finds one by a ping for each request that arrives, and proxies only acknowledge.
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ForceServerCodecV2(newCodec()),
	}
	if config != nil {
		// TLS has a buffer of its own; another one would be kept for each proxy.
		options = append(options, grpc.ReadBufferSize(0), grpc.Creds(proxies.cfg.Panics.Credentials(countedTLS{credentials.NewTLS(config)})))
	} else {
		l = server.Plaintext(l)
	}
	s := grpc.NewServer(options...)
	guarded := proxies.cfg.Panics.Registrar(serving, s)
	NewService(ctx, proxies, admission).Register(guarded)
	for _, o := range others {
		o.Register(guarded)
	}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		limit := time.AfterFunc(drainTimeout, s.Stop)
		defer limit.Stop()
		s.GracefulStop()
	})
	err := s.Serve(l)
	if !stop() {
		<-drained
		return nil
	}
	return err
}

// countedTLS counts the frames of strangers behind TLS.
type countedTLS struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c countedTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	return server.CountFrames(conn), info, nil
}

// Clone implements credentials.TransportCredentials.
func (c countedTLS) Clone() credentials.TransportCredentials {
	return countedTLS{c.TransportCredentials.Clone()}
}
