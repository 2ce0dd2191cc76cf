package kds

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/encoding/gzip" // zones compress their requests
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
)

// Limits of the wire. Source: Kuma's wire format, "Limits, keepalive, stream life".
const (
	// MaxMessageSize is the size of the largest message that every peer accepts, in bytes.
	MaxMessageSize = 10 << 20
	// DefaultMaxMessageSize is the size at which messages are split, in bytes.
	DefaultMaxMessageSize = 1 << 20

	// pingInterval is the interval of a zone's pings. The global pings silent zones a little sooner, and all of them together
	// (see pingBeat), so that a zone does not while the global's pings arrive: each would wake the global for itself.
	pingInterval, globalPingInterval = 15 * time.Second, 12 * time.Second
	// shortestPings allows for a peer's clock: one that pings every 15 s must never be disconnected.
	shortestPings = 10 * time.Second
	// maxStreams bounds the concurrent calls of a connection: a zone needs a handful.
	maxStreams = 128
	// maxHeaders bounds the metadata of a call, in bytes: room for several tokens.
	maxHeaders = 16 << 10
	// writeBuffer is the size of one write to the kernel, in bytes. Each connection that is being sent a list holds
	// such a buffer; the others share theirs.
	writeBuffer = 16 << 10
	// window is how much a peer may send on a connection before it is read, in bytes: lists of 10,000 policies flow at
	// 40 MB/s over a round trip of 100 ms. It is fixed, because gRPC estimates a window by a ping for each arrival, and
	// each acknowledgement would cost both ends another packet.
	window = 4 << 20
	// envelopeRoom is the room in a message for all but its items, in bytes.
	envelopeRoom = 4 << 10
)

// ServerOptions returns the options of a gRPC server that serves KDS, except its credentials.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: globalPingInterval, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestPings, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(MaxMessageSize),
		grpc.MaxSendMsgSize(MaxMessageSize),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(longestHandshake), // server.Guest ends connections that send nothing sooner
		grpc.WriteBufferSize(writeBuffer),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.StatsHandler(&connections{lookout: lookout{interval: lookInterval}}),
		grpc.ForceServerCodecV2(newCodec()),
	}
}

// spreadOverNames makes zones pick any of the addresses of a name first.
const spreadOverNames = `{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":true}}]}`

// dialOptions returns the zone's counterpart of ServerOptions.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultServiceConfig(spreadOverNames),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: longestHandshake}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout,
			PermitWithoutStream: true}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageSize), grpc.MaxCallSendMsgSize(MaxMessageSize),
			grpc.ForceCodecV2(newCodec())),
	}
}

// connections numbers transport connections in order of arrival: a session belongs to one, and the newest of a zone
// wins.
type connections struct {
	last    atomic.Uint64
	lookout lookout
}

type connectionKey struct{}

// connection is one transport connection, for all calls on it.
type connection struct {
	number uint64
	// hangUp closes it at once, without a status: what waits in the transport is lost, and all streams end.
	hangUp func()
	// transport is nil without Listener.
	transport *transport
}

// TagConn implements stats.Handler.
func (c *connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	tagged := &connection{number: c.last.Add(1), hangUp: func() {}}
	if a, ok := info.RemoteAddr.(closableAddr); ok {
		tagged.hangUp, tagged.transport = a.transport.hangUp, a.transport
		c.lookout.watch(a.transport)
	}
	return context.WithValue(ctx, connectionKey{}, tagged)
}

// HandleConn implements stats.Handler.
func (*connections) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (*connections) HandleRPC(context.Context, stats.RPCStats) {}

// connectionOf returns the connection of a call; nil without ServerOptions.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// Listener wraps l so that its connections can be closed at once. gRPC ends a stream only after all that waits for the
// peer, which never happens with a peer that does not read.
func Listener(l net.Listener) net.Listener { return closableListener{l} }

type closableListener struct{ net.Listener }

// Accept implements net.Listener.
func (l closableListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return closableConn{conn, &pings{to: conn}, newTransport(conn)}, nil
}

// closableConn can be found by its address, which is all that gRPC exposes of it. Without TLS, it coalesces pings.
type closableConn struct {
	net.Conn
	pings     *pings
	transport *transport
}

// Read implements net.Conn.
func (c closableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.transport.read.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c closableConn) Close() error {
	c.transport.rest()
	return c.Conn.Close()
}

// Write implements net.Conn.
func (c closableConn) Write(b []byte) (int, error) { return c.pings.write(b) }

// RemoteAddr implements net.Conn.
func (c closableConn) RemoteAddr() net.Addr { return closableAddr{c.Conn.RemoteAddr(), c.transport} }

type closableAddr struct {
	net.Addr
	transport *transport
}

// Unwrap returns the address of the underlying connection.
func (a closableAddr) Unwrap() net.Addr { return a.Addr }
