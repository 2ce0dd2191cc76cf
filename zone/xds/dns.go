package xds

import (
	"fmt"
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/data/dns/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// DNSKey is the key of node.metadata of a proxy that answers DNS queries for service names: an object with DNSAddress
// and DNSUpstreams.
const DNSKey = "causeway.io/dns"

// Keys of the object at DNSKey: where the proxy listens, `ip:port` on loopback, and the servers to which it forwards
// queries for other names, a list of `ip:port`.
const (
	DNSAddress   = "address"
	DNSUpstreams = "upstreams"
	// DNSCluster is true, instead of an address, if the resolver of a Kubernetes cluster answers for the names.
	DNSCluster = "cluster"
)

const (
	// dnsListener is the name of the listener for queries.
	dnsListener = "causeway_dns"
	// maxDNSUpstreams limits the servers for other names.
	maxDNSUpstreams = 3
	// answerTime is how long callers may cache an answer: Envoy's minimum.
	answerTime = 30 * time.Second
	// Queries for other names: how long a server may take to answer one, and how many may wait.
	dnsUpstreamTime = 2 * time.Second
	maxDNSPending   = 256
)

// dnsServer is where a proxy answers DNS queries.
type dnsServer struct {
	// cluster means that the resolver of the cluster answers for the names instead of the proxy.
	cluster   bool
	listen    endpoint
	upstreams []endpoint
}

// ParseDNSAddress parses an `ip:port` on which a proxy answers queries. It must be on loopback: callers are not
// authenticated, and an open resolver can be used to attack others.
func ParseDNSAddress(text string) (netip.AddrPort, error) {
	at, err := parseDNS(text)
	if err == nil && !at.Addr().IsLoopback() {
		err = fmt.Errorf("%s is not on loopback: an open resolver can be used to attack others", at)
	}
	return at, err
}

// ParseDNSUpstreams parses the servers for other names.
func ParseDNSUpstreams(texts []string) ([]netip.AddrPort, error) {
	if len(texts) > maxDNSUpstreams {
		return nil, fmt.Errorf("%d servers, want at most %d", len(texts), maxDNSUpstreams)
	}
	var out []netip.AddrPort
	for _, text := range texts {
		at, err := parseDNS(text)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return out, nil
}

func parseDNS(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	switch {
	case err != nil:
		return at, fmt.Errorf("%.60q: want an IP address and a port, such as 127.0.0.1:15053", text)
	case at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast() || at.Addr().Zone() != "":
		return at, fmt.Errorf("%s: want the address of one server, and a port from 1 to 65535", at)
	}
	return at, nil
}

// dnsOf reads where a proxy answers DNS queries; nil if it does not.
func dnsOf(node *corev3.Node) (*dnsServer, error) {
	value := node.GetMetadata().GetFields()[DNSKey]
	if value == nil {
		return nil, nil
	}
	fields := value.GetStructValue().GetFields()
	if fields[DNSCluster].GetBoolValue() {
		return &dnsServer{cluster: true}, nil
	}
	at, err := ParseDNSAddress(fields[DNSAddress].GetStringValue())
	if err != nil {
		return nil, fmt.Errorf("%w: metadata.%s.%s: %w", ErrNode, DNSKey, DNSAddress, err)
	}
	upstreams, err := ParseDNSUpstreams(stringsOf(fields[DNSUpstreams]))
	if err != nil {
		return nil, fmt.Errorf("%w: metadata.%s.%s: %w", ErrNode, DNSKey, DNSUpstreams, err)
	}
	out := &dnsServer{listen: endpoint{at.Addr().String(), uint32(at.Port())}}
	for _, u := range upstreams {
		out.upstreams = append(out.upstreams, endpoint{u.Addr().String(), uint32(u.Port())})
	}
	return out, nil
}

func stringsOf(list *structpb.Value) []string {
	var out []string
	for _, v := range list.GetListValue().GetValues() {
		out = append(out, v.GetStringValue())
	}
	return out
}

// listener answers queries for the names in the table, and forwards others if it has servers for them. It is a UDP
// listener of its own, so a changed name affects no connection.
func (d *dnsServer) listener(table map[string]netip.Addr) (*resource, error) {
	names := &dnsv3.DnsTable{ExternalRetryCount: 1}
	for _, name := range sortedNames(table) {
		names.VirtualDomains = append(names.VirtualDomains, &dnsv3.DnsTable_DnsVirtualDomain{
			Name: name, AnswerTtl: durationpb.New(answerTime),
			Endpoint: &dnsv3.DnsTable_DnsEndpoint{EndpointConfig: &dnsv3.DnsTable_DnsEndpoint_AddressList{
				AddressList: &dnsv3.DnsTable_AddressList{Address: []string{table[name].String()}},
			}},
		})
	}
	filter := &filterv3.DnsFilterConfig{StatPrefix: dnsListener, ServerConfig: &filterv3.DnsFilterConfig_ServerContextConfig{
		ConfigSource: &filterv3.DnsFilterConfig_ServerContextConfig_InlineDnsTable{InlineDnsTable: names},
	}}
	var err error
	if filter.ClientConfig, err = d.forwarding(); err != nil {
		return nil, err
	}
	packed, err := pack(filter)
	if err != nil {
		return nil, err
	}
	address := d.listen.proto()
	address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	return newResource(kindListener, dnsListener, &listenerv3.Listener{
		Name: dnsListener, StatPrefix: dnsListener, Address: address,
		UdpListenerConfig: &listenerv3.UdpListenerConfig{},
		ListenerFilters: []*listenerv3.ListenerFilter{{Name: "envoy.filters.udp.dns_filter",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed}}},
	})
}

// forwarding configures the servers for other names; nil without any.
func (d *dnsServer) forwarding() (*filterv3.DnsFilterConfig_ClientContextConfig, error) {
	if len(d.upstreams) == 0 {
		return nil, nil
	}
	resolver := &caresv3.CaresDnsResolverConfig{DnsResolverOptions: &corev3.DnsResolverOptions{NoDefaultSearchDomain: true}}
	for _, u := range d.upstreams {
		at := u.proto()
		at.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
		resolver.Resolvers = append(resolver.Resolvers, at)
	}
	packed, err := pack(resolver)
	if err != nil {
		return nil, err
	}
	return &filterv3.DnsFilterConfig_ClientContextConfig{
		ResolverTimeout: durationpb.New(dnsUpstreamTime), MaxPendingLookups: maxDNSPending,
		TypedDnsResolverConfig: &corev3.TypedExtensionConfig{Name: "envoy.network.dns_resolver.cares", TypedConfig: packed},
	}, nil
}
