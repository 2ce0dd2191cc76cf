package peer

import (
	"errors"
	"fmt"
	"net"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Global is a server that plays a zone's global: it accepts the two streams, and a test sends and reads on them freely.
// It has no TLS and implements no other method. Close it after use.
type Global struct {
	listener net.Listener
	server   *grpc.Server
	served   chan error
	sessions chan *Session

	mu   sync.Mutex
	half *Session // guarded by mu: the last session, if one of its streams is missing
}

// Session is the two streams of a zone. They end with End, or when the zone ends them.
type Session struct {
	// Down is GlobalToZoneSync, Up is ZoneToGlobalSync. Messages are *[]byte.
	Down, Up grpc.ServerStream

	over chan struct{}
	once sync.Once
}

// StartGlobal listens on a loopback port.
func StartGlobal() (*Global, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Global{listener: listener, served: make(chan error, 1), sessions: make(chan *Session)}
	g.server = grpc.NewServer(grpc.ForceServerCodecV2(rawBytes{}), grpc.UnknownServiceHandler(g.serve))
	go func() { g.served <- g.server.Serve(listener) }()
	return g, nil
}

// URL returns the URL that a zone connects to.
func (g *Global) URL() string { return "grpc://" + g.listener.Addr().String() }

// Sessions returns the sessions as zones open them. A session waits until the test receives it.
func (g *Global) Sessions() <-chan *Session { return g.sessions }

// Close ends all sessions.
func (g *Global) Close() error {
	g.server.Stop()
	return <-g.served
}

var errOver = errors.New("the session was ended")

// serve keeps a stream open until its session is over. It refuses other methods as unimplemented, which zones expect
// from a plain global.
func (g *Global) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if method != service+"GlobalToZoneSync" && method != service+"ZoneToGlobalSync" {
		return status.Error(codes.Unimplemented, method)
	}
	s, whole := g.join(method, stream)
	defer s.End()
	if whole {
		select {
		case g.sessions <- s:
		case <-s.over:
		case <-stream.Context().Done():
		}
	}
	select {
	case <-s.over:
		return errOver
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// join combines two streams into a session.
func (g *Global) join(method string, stream grpc.ServerStream) (s *Session, whole bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s = g.half
	if s != nil {
		select {
		case <-s.over: // its stream ended alone
			s = nil
		default:
		}
	}
	if s == nil {
		s = &Session{over: make(chan struct{})}
		g.half = s
	} else {
		g.half = nil
	}
	if method == service+"GlobalToZoneSync" {
		s.Down = stream
	} else {
		s.Up = stream
	}
	return s, s.Down != nil && s.Up != nil
}

// End ends both streams.
func (s *Session) End() { s.once.Do(func() { close(s.over) }) }

// Send sends a response on Down.
func (s *Session) Send(r *discovery.DeltaDiscoveryResponse) error { return sendTo(s.Down, r) }

// Ask sends a request on Up.
func (s *Session) Ask(r *discovery.DeltaDiscoveryRequest) error { return sendTo(s.Up, r) }

// Subscribe requests a type from the zone.
func (s *Session) Subscribe(t string) error {
	return s.Ask(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "global"}, TypeUrl: t,
		ResourceNamesSubscribe: []string{"*"}})
}

// Answered reads the zone's messages on Down until one answers the nonce, and returns that one.
func (s *Session) Answered(nonce string) (*discovery.DeltaDiscoveryRequest, error) {
	for {
		r := &discovery.DeltaDiscoveryRequest{}
		if err := receiveFrom(s.Down, r); err != nil {
			return nil, fmt.Errorf("no answer to nonce %s: %w", nonce, err)
		}
		if r.GetResponseNonce() == nonce {
			return r, nil
		}
	}
}

// Received reads the next response of the zone on Up.
func (s *Session) Received() (*discovery.DeltaDiscoveryResponse, error) {
	r := &discovery.DeltaDiscoveryResponse{}
	return r, receiveFrom(s.Up, r)
}

func sendTo(stream grpc.ServerStream, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return stream.SendMsg(&raw)
}

func receiveFrom(stream grpc.ServerStream, m proto.Message) error {
	var raw []byte
	if err := stream.RecvMsg(&raw); err != nil {
		return err
	}
	return proto.Unmarshal(raw, m)
}
