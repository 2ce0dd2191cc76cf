package peer

import (
	"context"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

// The types that a proxy requests.
const (
	ClusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	ListenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	SecretType    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	routeType     = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// ProxyConfig describes how a proxy connects.
type ProxyConfig struct {
	// XDS is the zone's host:port, plaintext.
	XDS string
	// Mesh and Dataplane name the Dataplane of the proxy. Namespace, if set, is the Dataplane's.
	Mesh, Namespace, Dataplane string
	// StateOfTheWorld chooses the older of the two forms of the protocol.
	StateOfTheWorld bool
	// Secrets makes the proxy request the secrets that its listeners name.
	Secrets bool
	// Refuses is the error with which the proxy rejects every response. Empty for a proxy that accepts all.
	Refuses string
	// Pace, if set, is called before the proxy acknowledges a response, and returns when the proxy may. ctx ends with the
	// stream.
	Pace func(ctx context.Context)
	// Deaf makes the proxy read nothing from its socket once it has requested clusters and listeners.
	Deaf bool
}

// Proxy is a client of ADS that acknowledges every response. It requests clusters and listeners, and the filters that
// listeners leave to discovery.
type Proxy struct {
	cfg  ProxyConfig
	conn *grpc.ClientConn
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex // guards all fields below
	have     map[string]map[string]held
	versions map[string]string // by type, in the older form of the protocol
	messages int
	came     []string
	caughtUp bool
	failed   error
}

// held is a resource as received. Its version is empty in the older form.
type held struct {
	version string
	raw     []byte
}

// ConnectProxy opens the stream and follows it until Close.
func ConnectProxy(ctx context.Context, cfg ProxyConfig) (*Proxy, error) {
	p := &Proxy{cfg: cfg, have: map[string]map[string]held{}, versions: map[string]string{}}
	return p, p.connect(ctx, false)
}

// Reconnect replaces the stream with a new one and announces the proxy's resources, as Envoy does. It returns before
// the server has answered: see CaughtUp.
func (p *Proxy) Reconnect(ctx context.Context) error {
	_ = p.Close() // the server may have ended the connection
	p.mu.Lock()
	p.came, p.caughtUp, p.failed = nil, false, nil
	delete(p.versions, routeType) // makes the server answer
	p.mu.Unlock()
	return p.connect(ctx, true)
}

func (p *Proxy) connect(ctx context.Context, again bool) error {
	var ears ears
	conn, err := grpc.NewClient(p.cfg.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(ears.dial))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	p.conn, p.stop = conn, stop
	follow := p.delta
	if p.cfg.StateOfTheWorld {
		follow = p.stateOfTheWorld
	}
	p.wait.Go(func() {
		if p.cfg.Deaf {
			follow = func(ctx context.Context, _ bool) error { return p.askAndHearNothing(ctx, &ears) }
		}
		err := follow(ctx, again)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failed = err
	})
	return nil
}

// Have returns the resources of a type, by name, as bytes.
func (p *Proxy) Have(t string) map[string][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]byte{}
	for name, one := range p.have[t] {
		all[name] = one.raw
	}
	return all
}

// Complete reports whether the proxy has listeners and everything that they refer to.
func (p *Proxy) Complete() bool {
	for t, names := range p.referred() {
		have := p.Have(t)
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { _, there := have[name]; return !there }) {
			return false
		}
	}
	return true
}

// Messages returns the number of responses so far.
func (p *Proxy) Messages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages
}

// Came lists the resources received since the last connect: names, with a minus before those that were removed.
func (p *Proxy) Came() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.came)
}

// CaughtUp reports whether the server has answered everything that the proxy announced after Reconnect. By then, the
// proxy has what it lacked.
func (p *Proxy) CaughtUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caughtUp
}

// Err returns why the stream ended, or nil while it is open.
func (p *Proxy) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Close ends the connection and waits for the stream.
func (p *Proxy) Close() error {
	p.stop()
	err := p.conn.Close()
	p.wait.Wait()
	return err
}

// node identifies the proxy as an Envoy: other state-of-the-world clients get no filters over ECDS.
func (p *Proxy) node() *corev3.Node {
	node := &corev3.Node{Id: xds.NodeID(p.cfg.Mesh, p.cfg.Dataplane), UserAgentName: "envoy"}
	if p.cfg.Namespace != "" {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{xds.NamespaceKey: structpb.NewStringValue(p.cfg.Namespace)}}
	}
	return node
}
