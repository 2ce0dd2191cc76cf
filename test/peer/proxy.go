package peer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Types that a proxy asks for.
const (
	ClusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	ListenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

const ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// ProxyConfig is how a proxy connects.
type ProxyConfig struct {
	// XDS is the zone's host:port, plaintext.
	XDS string
	// Mesh and Dataplane say whose proxy it is.
	Mesh, Dataplane string
	// StateOfTheWorld chooses the older of the two forms of the protocol.
	StateOfTheWorld bool
}

// Proxy is a client of ADS that acknowledges all that comes. It asks for clusters and listeners, and for the filters
// that HTTP listeners leave to discovery.
type Proxy struct {
	cfg  ProxyConfig
	conn *grpc.ClientConn
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex // guards all below
	have     map[string]map[string][]byte
	messages int
	failed   error
}

// ConnectProxy opens the stream and follows it until Close.
func ConnectProxy(ctx context.Context, cfg ProxyConfig) (*Proxy, error) {
	conn, err := grpc.NewClient(cfg.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &Proxy{cfg: cfg, conn: conn, stop: stop, have: map[string]map[string][]byte{}}
	follow := p.delta
	if cfg.StateOfTheWorld {
		follow = p.stateOfTheWorld
	}
	p.wait.Go(func() {
		err := follow(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failed = err
	})
	return p, nil
}

// Have returns the resources of a type, by name, as bytes.
func (p *Proxy) Have(t string) map[string][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]byte{}
	for name, raw := range p.have[t] {
		all[name] = raw
	}
	return all
}

// Messages is how many responses have come.
func (p *Proxy) Messages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages
}

// Err is why the stream ended, nil while it is open.
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

// node says that it is an Envoy: other clients of the state of the world are not offered filters by ECDS.
func (p *Proxy) node() *corev3.Node {
	return &corev3.Node{Id: p.cfg.Mesh + "." + p.cfg.Dataplane, UserAgentName: "envoy"}
}

func (p *Proxy) delta(ctx context.Context) error {
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, ads+"DeltaAggregatedResources")
	if err != nil {
		return err
	}
	for _, t := range []string{ClusterType, ListenerType} {
		if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: p.node(), TypeUrl: t, ResourceNamesSubscribe: []string{"*"}}); err != nil {
			return err
		}
	}
	subscribed := map[string]bool{}
	for {
		response := &discovery.DeltaDiscoveryResponse{}
		if err := stream.RecvMsg(response); err != nil {
			return err
		}
		changed := map[string][]byte{}
		for _, r := range response.Resources {
			changed[r.Name] = r.Resource.GetValue()
		}
		p.keep(response.TypeUrl, changed, response.RemovedResources)
		if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: response.TypeUrl, ResponseNonce: response.Nonce}); err != nil {
			return err
		}
		var names []string
		for _, name := range p.filters() {
			if !subscribed[name] {
				subscribed[name] = true
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: ExtensionType, ResourceNamesSubscribe: names}); err != nil {
				return err
			}
		}
	}
}

func (p *Proxy) stateOfTheWorld(ctx context.Context) error {
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, ads+"StreamAggregatedResources")
	if err != nil {
		return err
	}
	for _, t := range []string{ClusterType, ListenerType} {
		if err := stream.SendMsg(&discovery.DiscoveryRequest{Node: p.node(), TypeUrl: t}); err != nil {
			return err
		}
	}
	var subscribed []string
	var extensions discovery.DiscoveryRequest // the last acknowledgement, which new names have to repeat
	for {
		response := &discovery.DiscoveryResponse{}
		if err := stream.RecvMsg(response); err != nil {
			return err
		}
		if err := p.replace(response); err != nil {
			return err
		}
		answer := &discovery.DiscoveryRequest{TypeUrl: response.TypeUrl, ResponseNonce: response.Nonce, VersionInfo: response.VersionInfo}
		if response.TypeUrl == ExtensionType {
			answer.ResourceNames = subscribed
			extensions.ResponseNonce, extensions.VersionInfo = response.Nonce, response.VersionInfo
		}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
		if names := p.filters(); !slices.Equal(names, subscribed) {
			subscribed = names
			request := &discovery.DiscoveryRequest{
				TypeUrl: ExtensionType, ResourceNames: names,
				ResponseNonce: extensions.ResponseNonce, VersionInfo: extensions.VersionInfo,
			}
			if err := stream.SendMsg(request); err != nil {
				return err
			}
		}
	}
}

func (p *Proxy) keep(t string, changed map[string][]byte, removed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages++
	if p.have[t] == nil {
		p.have[t] = map[string][]byte{}
	}
	for _, name := range removed {
		delete(p.have[t], name)
	}
	for name, raw := range changed {
		p.have[t][name] = raw
	}
}

// replace keeps a response of the older form: all listeners and clusters, or those extension configs that changed.
func (p *Proxy) replace(response *discovery.DiscoveryResponse) error {
	changed := map[string][]byte{}
	for _, r := range response.Resources {
		name, err := nameOf(r)
		if err != nil {
			return err
		}
		changed[name] = r.GetValue()
	}
	var removed []string
	if response.TypeUrl != ExtensionType {
		for name := range p.Have(response.TypeUrl) {
			if _, still := changed[name]; !still {
				removed = append(removed, name)
			}
		}
	}
	p.keep(response.TypeUrl, changed, removed)
	return nil
}

// nameOf reads the name inside a resource: the older form has none beside it.
func nameOf(r *anypb.Any) (string, error) {
	var message interface {
		proto.Message
		GetName() string
	}
	switch r.GetTypeUrl() {
	case ClusterType:
		message = &clusterv3.Cluster{}
	case ListenerType:
		message = &listenerv3.Listener{}
	case ExtensionType:
		message = &corev3.TypedExtensionConfig{}
	default:
		return "", fmt.Errorf("nobody asked for a %s", r.GetTypeUrl())
	}
	err := r.UnmarshalTo(message)
	return message.GetName(), err
}

// filters are the names of the filters that the listeners leave to discovery, sorted.
func (p *Proxy) filters() []string {
	var names []string
	for _, raw := range p.Have(ListenerType) {
		l := &listenerv3.Listener{}
		if (&anypb.Any{TypeUrl: ListenerType, Value: raw}).UnmarshalTo(l) != nil {
			continue
		}
		for _, chain := range l.GetFilterChains() {
			for _, f := range chain.GetFilters() {
				if f.GetConfigDiscovery() != nil {
					names = append(names, f.GetName())
				}
				manager := &hcmv3.HttpConnectionManager{}
				if f.GetTypedConfig().UnmarshalTo(manager) != nil {
					continue
				}
				for _, hf := range manager.GetHttpFilters() {
					if hf.GetConfigDiscovery() != nil {
						names = append(names, hf.GetName())
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}
