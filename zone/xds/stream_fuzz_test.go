package xds_test

import (
	"context"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/secrets"
)

// adsStream is either form of ADS: requests and responses are what each has of its own.
type adsStream[Q, R any] interface {
	Send(Q) error
	Recv() (R, error)
	CloseSend() error
}

// evilProxy speaks ADS as a script tells it to.
type evilProxy[Q, R proto.Message] struct {
	zone *fuzzedZone
	open func(context.Context, discovery.AggregatedDiscoveryServiceClient) (adsStream[Q, R], error)
	// ask is a request that begins something, answer one about a response; an empty text acknowledges it.
	ask    func(op, a, b byte) Q
	answer func(m R, node byte, text string) Q
	// resources are those in a response.
	resources func(R) []*anypb.Any

	conn   *grpc.ClientConn
	cancel context.CancelFunc
	stream adsStream[Q, R]
	in     chan R
	done   chan struct{}
	last   *R
}

func (p *evilProxy[Q, R]) connect() {
	p.hangUp()
	p.conn = p.zone.dial()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := p.open(ctx, discovery.NewAggregatedDiscoveryServiceClient(p.conn))
	if err != nil {
		cancel()
		must(p.zone.t, err)
	}
	p.cancel, p.stream, p.in, p.done = cancel, stream, make(chan R, 1024), make(chan struct{})
	go func(in chan R, done chan struct{}) {
		defer close(done)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case in <- m:
			default:
				p.zone.t.Error("more than a thousand responses that nobody asked for")
				return
			}
		}
	}(p.in, p.done)
}

func (p *evilProxy[Q, R]) hangUp() {
	if p.conn == nil {
		return
	}
	p.cancel()
	<-p.done
	_ = p.conn.Close()
	p.conn, p.last = nil, nil
}

func (p *evilProxy[Q, R]) send(m Q) {
	if _, err := proto.Marshal(m); err == nil {
		_ = p.stream.Send(m) // an ended stream is for the script to notice
	}
}

func (p *evilProxy[Q, R]) take() bool {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case m := <-p.in:
		p.last = &m
		p.own(m)
	case <-p.done:
	case <-timer.C:
	}
	return p.last != nil
}

// own fails when a response tells of the other proxy: all that it has is named by its Dataplane.
func (p *evilProxy[Q, R]) own(m R) {
	for _, raw := range p.resources(m) {
		if strings.Contains(string(raw.GetValue()), "sound") {
			p.zone.t.Errorf("a %s of another proxy was sent", raw.GetTypeUrl())
		}
	}
}

func (p *evilProxy[Q, R]) play(op, a, b byte) {
	if p.conn == nil {
		p.connect()
	}
	switch op % 10 {
	case 0, 1, 2, 3:
		p.send(p.ask(op%10, a, b))
	case 4:
		if p.take() {
			p.send(p.answer(*p.last, a, ""))
		}
	case 5:
		if p.take() {
			p.send(p.answer(*p.last, a, pick(saidTexts, b)))
		}
	case 6:
		p.zone.write(a, b)
	case 7:
		_ = p.stream.CloseSend()
	case 8:
		p.connect()
	case 9:
		p.take()
	}
}

func streamSeeds(f *testing.F) {
	f.Helper()
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 6, 0, 9, 4, 3, 0})          // asks, acknowledges, hears of a change
	f.Add([]byte{1, 3, 48, 4, 0, 0, 1, 2, 64, 5, 0, 0, 6, 2, 3, 5, 0, 3})        // secrets and filters by name, refuses
	f.Add([]byte{2, 0, 9, 0, 1, 0, 3, 1, 3, 6, 1, 0, 6, 0, 0, 4, 0, 0, 8, 0, 0}) // has something, takes back, comes back
	f.Add([]byte{0, 6, 0, 0, 7, 3, 0, 0, 8, 9, 0, 0, 7, 0, 0, 6, 4, 0})          // unknown types, gRPC, half closed
}

// playProxy plays an input beside a sound proxy, which is told of the next change on the stream that it began with.
func playProxy[Q, R proto.Message](t *testing.T, box *secrets.Box, raw []byte, p *evilProxy[Q, R]) {
	t.Helper()
	c := newToll()
	z := startFuzzed(t, box)
	p.zone = z
	heard := z.sound()
	eachOp(raw, p.play)
	z.server.dataplane("sound", `{"name": "main", "port": 8081, "servicePort": 9080, "protocol": "http"}`)
	heard()
	p.hangUp()
	if _, err := z.registry.Gather(); err != nil {
		t.Errorf("metrics cannot be shown: %v", err)
	}
	z.stop()
	c.check(t)
}

// sound follows the listeners of another proxy. What it returns waits for those of port 8081, and ends it.
func (z *fuzzedZone) sound() (heard func()) {
	conn := z.dial()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(z.t, err)
	must(z.t, stream.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("sound", ""), TypeUrl: lds}))
	return func() {
		defer func() {
			cancel()
			_ = conn.Close()
		}()
		for {
			m, err := stream.Recv()
			if err != nil {
				z.t.Errorf("the proxy beside it was not told: %v", err)
				return
			}
			for _, r := range m.GetResources() {
				if strings.Contains(r.GetName(), "8081") || strings.Contains(string(r.GetResource().GetValue()), "\x18\x91?") {
					return
				}
			}
			must(z.t, stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()}))
		}
	}
}

// FuzzDeltaSession plays sequences of what a proxy can say on a stream of incremental ADS to a real zone.
func FuzzDeltaSession(f *testing.F) {
	box := fuzzedBox(f)
	streamSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		playProxy(t, box, raw, &evilProxy[*discovery.DeltaDiscoveryRequest, *discovery.DeltaDiscoveryResponse]{
			open: func(ctx context.Context, c discovery.AggregatedDiscoveryServiceClient) (
				adsStream[*discovery.DeltaDiscoveryRequest, *discovery.DeltaDiscoveryResponse], error) {
				return c.DeltaAggregatedResources(ctx)
			},
			ask: func(op, a, b byte) *discovery.DeltaDiscoveryRequest {
				m := &discovery.DeltaDiscoveryRequest{Node: saidNode(0), TypeUrl: pick(saidTypes, a)}
				switch op {
				case 0:
					m.Node = saidNode(b)
				case 1:
					m.ResourceNamesSubscribe = namesOf(a, b)
				case 2:
					m.InitialResourceVersions = map[string]string{}
					for _, name := range namesOf(a, b) {
						m.InitialResourceVersions[name] = name
					}
				case 3:
					m.ResourceNamesUnsubscribe, m.ResponseNonce = namesOf(a, b), pick(saidTexts, b)
				}
				return m
			},
			answer: func(r *discovery.DeltaDiscoveryResponse, node byte, text string) *discovery.DeltaDiscoveryRequest {
				m := &discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
				if node%4 == 1 {
					m.Node = saidNode(node)
				}
				if text != "" {
					m.ErrorDetail = &rpcstatus.Status{Message: text}
				}
				return m
			},
			resources: func(r *discovery.DeltaDiscoveryResponse) (out []*anypb.Any) {
				for _, one := range r.GetResources() {
					out = append(out, one.GetResource())
				}
				return out
			},
		})
	})
}

// FuzzSotwSession is FuzzDeltaSession for the state of the world.
func FuzzSotwSession(f *testing.F) {
	box := fuzzedBox(f)
	streamSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		playProxy(t, box, raw, &evilProxy[*discovery.DiscoveryRequest, *discovery.DiscoveryResponse]{
			open: func(ctx context.Context, c discovery.AggregatedDiscoveryServiceClient) (
				adsStream[*discovery.DiscoveryRequest, *discovery.DiscoveryResponse], error) {
				return c.StreamAggregatedResources(ctx)
			},
			ask: func(op, a, b byte) *discovery.DiscoveryRequest {
				m := &discovery.DiscoveryRequest{Node: saidNode(0), TypeUrl: pick(saidTypes, a)}
				switch op {
				case 0:
					m.Node = saidNode(b)
				case 1:
					m.ResourceNames = namesOf(a, b)
				case 2:
					m.ResourceNames, m.VersionInfo = namesOf(a, b), "1"
				case 3:
					m.ResourceNames, m.ResponseNonce = namesOf(a, b), pick(saidTexts, b)
				}
				return m
			},
			answer: func(r *discovery.DiscoveryResponse, node byte, text string) *discovery.DiscoveryRequest {
				m := &discovery.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(),
					VersionInfo: r.GetVersionInfo()}
				if node%4 == 1 {
					m.Node = saidNode(node)
				}
				if text != "" {
					m.ErrorDetail = &rpcstatus.Status{Message: text}
				}
				return m
			},
			resources: func(r *discovery.DiscoveryResponse) []*anypb.Any { return r.GetResources() },
		})
	})
}
