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
	// A proxy that does not answer a ping counts as dead.
	pingAfter, pingTimeout = time.Minute, 20 * time.Second
	// leastPing is the shortest interval at which proxies may ping.
	leastPing = 5 * time.Second
	// maxRequest, in bytes, exceeds any proxy's list of names and versions.
	maxRequest = 4 << 20
	// window is the number of bytes that a proxy may send before the server reads them.
	window = 256 << 10
	// maxStreams limits the streams of a connection. A proxy needs one, and one for each inbound's log.
	maxStreams = 128
	// maxHeaders limits the metadata of a stream, in bytes. It is many times the size of a token.
	maxHeaders = 16 << 10
	// handshakeTimeout limits the time of a connection until TLS and HTTP/2 are set up. A connection that sends little
	// ends sooner: server.Guest.
	handshakeTimeout = time.Minute
	// drainTimeout limits the time for streams to end when the server stops.
	drainTimeout = 5 * time.Second
)

// Registrar is a service that registers itself with a gRPC server.
type Registrar interface {
	Register(grpc.ServiceRegistrar)
}

// Serve serves ADS on l until ctx ends, then ends the streams and returns nil. It closes l. Without a TLS config it
// serves plaintext, which is for loopback. others are additional services for proxies, which authenticate their callers
// themselves.
func Serve(ctx context.Context, l net.Listener, config *tls.Config, proxies *Proxies, admission *Admission,
	others ...Registrar) error {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.WaitForHandlers(true),
		// Fixed windows: otherwise gRPC sends a ping per request to estimate one, and proxies only acknowledge.
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ForceServerCodecV2(newCodec()),
	}
	if config != nil {
		// TLS has its own buffer; another one would stay allocated for each proxy.
		options = append(options, grpc.ReadBufferSize(0),
			grpc.Creds(proxies.cfg.Panics.Credentials(countedTLS{credentials.NewTLS(config)})))
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

// countedTLS counts the frames of strangers below TLS.
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
