package proxypatch

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources/reach"
)

// forbidden returns why an ordinary patch may not add a cluster or listener to any proxy, or "". found are its dangers for
// callers.
func forbidden(m proto.Message, found []danger) string {
	if why := gained(nil, nil, found); why != "" {
		return why
	}
	if c, is := m.(*clusterv3.Cluster); is {
		return forbiddenCluster(c)
	}
	return ""
}

// added returns why an ordinary patch may not add a cluster or listener, or "". known returns what forbidden does; it may
// be nil.
func (g *Guard) added(m proto.Message, known func() string) string {
	if known == nil {
		known = func() string { return forbidden(m, dangers(m, ofCallers, nil)) }
	}
	if why := known(); why != "" {
		return why
	}
	switch v := m.(type) {
	case *clusterv3.Cluster:
		return g.addedCluster(v)
	case *listenerv3.Listener:
		return g.addedListener(v)
	}
	return ""
}

// addedFields are the fields of a new cluster: those of any cluster, and what makes one.
var addedFields = append([]string{
	"name", "type", "eds_cluster_config", "load_assignment", "transport_socket", "transport_socket_matches", "metadata",
	"upstream_http_protocol_options", "protocol_selection", "lb_subset_config", "use_tcp_for_dns_lookups",
}, clusterFields...)

func forbiddenCluster(c *clusterv3.Cluster) string {
	if field := differs(&clusterv3.Cluster{}, c, addedFields...); field != "" {
		return "has the field " + field
	}
	_, plain := c.GetClusterDiscoveryType().(*clusterv3.Cluster_Type)
	static := c.GetType() == clusterv3.Cluster_STATIC || c.GetType() == clusterv3.Cluster_STRICT_DNS ||
		c.GetType() == clusterv3.Cluster_LOGICAL_DNS
	if c.GetClusterDiscoveryType() != nil && !plain || !static || c.GetEdsClusterConfig() != nil {
		return "has endpoints that it does not list: want the type STATIC, STRICT_DNS or LOGICAL_DNS"
	}
	return ""
}

func (g *Guard) addedCluster(c *clusterv3.Cluster) string {
	for _, locality := range c.GetLoadAssignment().GetEndpoints() {
		if locality.GetLbConfig() != nil {
			return "has endpoints that it does not list"
		}
		for _, e := range locality.GetLbEndpoints() {
			if why := g.leadsHere(e.GetEndpoint().GetAddress()); why != "" {
				return why
			}
			if why := checksElsewhere(c, e.GetEndpoint()); why != "" {
				return why
			}
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				if why := g.leadsHere(more.GetAddress()); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// checksElsewhere returns why the health checks of a new cluster may reach something else than its endpoint, or "". The
// proxy sends checks by itself, and a name may be one of the proxy's own machine.
func checksElsewhere(c *clusterv3.Cluster, e *endpointv3.Endpoint) string {
	if at := e.GetHealthCheckConfig(); at.GetAddress() != nil || at.GetPortValue() != 0 {
		return "has health checks elsewhere than at its endpoints"
	}
	host := e.GetAddress().GetSocketAddress().GetAddress()
	if _, err := netip.ParseAddr(host); err != nil && len(c.GetHealthChecks()) > 0 {
		return fmt.Sprintf("has health checks of %q, which may be the proxy's own machine: want an IP address", host)
	}
	return ""
}

// leadsHere returns why an address may be one of the proxy's own machine, or "".
func (g *Guard) leadsHere(a *corev3.Address) string {
	at := a.GetSocketAddress()
	if at == nil || at.GetNetworkNamespaceFilepath() != "" || at.GetResolverName() != "" {
		return "has an endpoint without a plain address and port"
	}
	host := at.GetAddress()
	if g.Trusted != nil && g.Trusted(host, at.GetPortValue()) {
		return fmt.Sprintf("may lead to the zone's own server, at %s port %d", host, at.GetPortValue())
	}
	if why := reach.NoDestination(host); why != "" {
		return fmt.Sprintf("leads to %q, which %s", host, why)
	}
	if ip, err := netip.ParseAddr(host); err == nil && slices.Contains(g.Own, ip.Unmap().WithZone("")) {
		return fmt.Sprintf("leads to %s, which is the proxy's own machine", host)
	}
	return ""
}

// addedListener returns why an ordinary patch may not add a listener, or "": only local clients may reach it.
func (g *Guard) addedListener(l *listenerv3.Listener) string {
	at := l.GetAddress().GetSocketAddress()
	ip, err := netip.ParseAddr(at.GetAddress())
	switch {
	case at == nil || err != nil || !ip.IsLoopback() || at.GetProtocol() != corev3.SocketAddress_TCP || at.GetPortValue() == 0:
		return "listens elsewhere than on a TCP port of a loopback address, and so around the permissions of the inbounds"
	case at.GetNetworkNamespaceFilepath() != "" || len(l.GetAdditionalAddresses()) > 0 || l.GetApiListener() != nil ||
		l.GetListenerSpecifier() != nil || l.GetFcdsConfig() != nil || l.GetTransparent().GetValue() || l.GetFreebind().GetValue() ||
		l.GetUseOriginalDst().GetValue() || len(l.GetListenerFilters()) > 0 || len(l.GetSocketOptions()) > 0 ||
		l.GetEnableReusePort().GetValue():
		return "has more than an address and filter chains"
	case g.Trusted != nil && g.Trusted(at.GetAddress(), at.GetPortValue()):
		return fmt.Sprintf("listens on port %d of the zone's own server", at.GetPortValue())
	}
	return ""
}

// takenAway says why a resource cannot be added.
const takenAway = "was there, and another policy removed it"

// portTaken returns why a new listener may not have its port, or "".
func (g *Guard) portTaken(l *listenerv3.Listener) (why string, err error) {
	for _, name := range slices.Sorted(maps.Keys(g.Original.Listeners)) {
		other, err := readAs[*listenerv3.Listener](g.Original, g.Original.Listeners[name])
		if err != nil {
			return "", err
		}
		if portOf(other) == portOf(l) {
			return "listens on the port of " + name, nil
		}
	}
	return "", nil
}

func portOf(l *listenerv3.Listener) uint32 { return l.GetAddress().GetSocketAddress().GetPortValue() }
