package matching

import (
	"fmt"
	"strconv"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Tags of a Dataplane's inbounds that matching reads.
const (
	tagService  = resources.TagService
	tagProtocol = "kuma.io/protocol"
)

// Values of proxyTypes in a TargetRef.
const (
	proxyTypeSidecar = "Sidecar"
	proxyTypeGateway = "Gateway"
)

// Protocol is what an inbound's filters can evaluate: requests, or only connections.
type Protocol string

// The protocols. HTTP covers http, http2 and grpc; TCP covers everything else, including an absent protocol.
const (
	HTTP Protocol = "http"
	TCP  Protocol = "tcp"
)

// ProtocolOf maps an application protocol as users write it (`http2`, `grpc`, `kafka`) to the protocol that filters can
// evaluate.
func ProtocolOf(appProtocol string) Protocol {
	switch appProtocol {
	case "http", "http2", "grpc":
		return HTTP
	}
	return TCP
}

// ServerFirst reports whether the Dataplane declares that the application may send before its client does. It applies
// to TCP only.
func (in *InboundPort) ServerFirst() bool { return in.Tags[resources.TagServerFirst] == "true" }

// Proxy is what matching needs to know about one Dataplane. It is immutable.
type Proxy struct {
	Key resources.Key
	// Labels are the Dataplane's labels, shared with its resource.
	Labels map[string]string
	// Name is the display name. HashedName is the Dataplane's name on servers that hold a copy of it.
	Name, HashedName string
	// Zone and Namespace are the Dataplane's home. Namespace is empty if it has none.
	Zone, Namespace string
	// Gateway means that the proxy serves a gateway, not a service.
	Gateway bool
	// Inbounds lists the Dataplane's inbounds, in its order, followed by its egresses.
	Inbounds []InboundPort

	gatewayTags map[string]string
	// builtin means that a MeshGateway configures the proxy: served, if there is one. servedAs holds its names.
	builtin  bool
	served   *resources.Resource
	servedAs []string
}

// InboundPort is one inbound of a Proxy.
type InboundPort struct {
	// Name is empty if the user gave none.
	Name string
	Port uint32
	// AppProtocol is as the user wrote it, and empty if it is not set. Protocol is what filters can evaluate.
	AppProtocol string
	Protocol    Protocol
	Tags        map[string]string
	// Egress means that it is a listener for traffic to services outside the mesh: the one at index Listener of the
	// Dataplane's listeners.
	Egress   bool
	Listener int
}

// Section returns the name by which KRIs and sectionName refer to the inbound: its name, or its port number if it has
// none.
func (in *InboundPort) Section() string {
	if in.Name != "" {
		return in.Name
	}
	return strconv.FormatUint(uint64(in.Port), 10)
}

// NewProxy reads a Dataplane. It fails if r has another type or its spec does not decode.
func NewProxy(r *resources.Resource) (*Proxy, error) {
	if r.Type != resources.TypeDataplane {
		return nil, fmt.Errorf("%s is not a Dataplane: only Dataplanes are matched", r.Key)
	}
	spec, err := resources.SpecAs[meshpb.Dataplane](r)
	if err != nil {
		return nil, err
	}
	gateway := spec.GetNetworking().GetGateway()
	p := &Proxy{
		Key: r.Key, Labels: r.Labels, Name: r.DisplayName(), Zone: r.Zone(), Namespace: r.HomeNamespace(),
		Gateway: gateway != nil, gatewayTags: gateway.GetTags(),
		builtin: isBuiltin(spec),
	}
	p.HashedName = hashing.Name(r.Mesh, p.Name, p.Zone, p.Namespace)
	for _, in := range spec.GetNetworking().GetInbound() {
		app := in.GetProtocol()
		if app == "" {
			app = in.GetTags()[tagProtocol]
		}
		p.Inbounds = append(p.Inbounds, InboundPort{
			Name: in.GetName(), Port: in.GetPort(), AppProtocol: app, Protocol: ProtocolOf(app), Tags: in.GetTags(),
		})
	}
	for i, l := range spec.GetNetworking().GetListeners() {
		if l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneEgress {
			p.Inbounds = append(p.Inbounds, InboundPort{Name: l.GetName(), Port: l.GetPort(), Protocol: TCP, AppProtocol: "tcp",
				Egress: true, Listener: i})
		}
	}
	return p, nil
}

// Inbound finds an inbound by its name or port number. Names take precedence. It returns nil if there is none.
func (p *Proxy) Inbound(section string) *InboundPort {
	for i := range p.Inbounds {
		if p.hasSection(&p.Inbounds[i], section) {
			return &p.Inbounds[i]
		}
	}
	return nil
}

// hasSection reports whether section means in. A number means a port only if no inbound has it as its name.
func (p *Proxy) hasSection(in *InboundPort, section string) bool {
	if in.Name == section {
		return section != ""
	}
	for i := range p.Inbounds {
		if p.Inbounds[i].Name == section {
			return false
		}
	}
	return strconv.FormatUint(uint64(in.Port), 10) == section
}

// HasTags reports whether the inbound has all of the tags, as a MeshSubset sees them.
func (p *Proxy) HasTags(in *InboundPort, want map[string]string) bool {
	return p.hasTags(in.Tags, want)
}

func (p *Proxy) hasTags(tags, want map[string]string) bool {
	for key, value := range want {
		if have := p.tag(tags, key); have == "" || have != value {
			return false
		}
	}
	return true
}

// tag returns the value that a MeshSubset sees for key on the inbound with these tags. Zone and namespace come from the
// labels, which the server computes, and never from tags, which any author can set.
func (p *Proxy) tag(tags map[string]string, key string) string {
	switch key {
	case resources.LabelZone:
		return p.Zone
	case resources.LabelNamespace:
		return p.Namespace
	}
	return tags[key]
}
