package peer

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
)

// ears make connections that read nothing more once they are closed.
type ears struct{ closed atomic.Bool }

func (e *ears) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return &deafConn{Conn: conn, ears: e, ended: make(chan struct{})}, err
}

// deafConn is a connection that leaves its peer's bytes unread.
type deafConn struct {
	net.Conn
	ears  *ears
	ended chan struct{}
	once  sync.Once
}

// Read implements net.Conn.
func (c *deafConn) Read(p []byte) (int, error) {
	if c.ears.closed.Load() {
		<-c.ended
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// askAndHearNothing requests clusters and listeners, and reads no responses.
func (p *Proxy) askAndHearNothing(ctx context.Context, ears *ears) error {
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		ads+"DeltaAggregatedResources")
	if err != nil {
		return err
	}
	ears.closed.Store(true)
	for _, t := range []string{ClusterType, ListenerType} {
		if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: p.node(), TypeUrl: t,
			ResourceNamesSubscribe: []string{"*"}}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
