package discovery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Annotations of the Service in front of a zone ingress: an IP address and a port at which other zones reach it, where
// the Service itself does not know them. Source: Kuma, which has them on pods.
const (
	annotationPublicAddress = "kuma.io/ingress-public-address"
	annotationPublicPort    = "kuma.io/ingress-public-port"
)

// ingressPort is the name of the port of a pod that is a zone ingress.
const ingressPort = "ingress"

// isIngress reports whether the pod has the proxy of a zone ingress, as the chart makes it. Its arguments cannot change,
// as labels can.
func (p *Pod) isIngress() bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c container) bool {
		return c.Name == injection.BootstrapName && argument(c.Args, "--zone-ingress") != ""
	})
}

// hasProxy reports whether the pod has a proxy of any kind.
func (p *Pod) hasProxy() bool { return p.proxy() != nil || p.isIngress() }

// listens returns the port of a pod that is a zone ingress.
func (p *Pod) listens() uint32 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == ingressPort && isTCP(port.Protocol) {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// IngressOf returns the ZoneIngress of a pod that is one, without the labels that the server computes, and the problems
// of the pod. There is none before its Service has an address: others would dial the pod's own, which may be a
// stranger's in their network. None is made of a pod that is being deleted: see partLocked.
// services are those of its namespace, ordered by name; node may be nil. known are the names of load balancers.
func IngressOf(p *Pod, services []*Service, node *Node, known map[string]host) (*resources.Resource, []Problem, error) {
	if !p.isIngress() || p.over() || p.leaving() || len(p.addresses()) == 0 {
		return nil, nil, nil
	}
	at, why := p.advertised(services, node, known)
	if why != nil {
		return nil, []Problem{*why}, nil
	}
	spec, err := resources.NewSpecOf(resources.TypeZoneIngress, &meshpb.ZoneIngress{Networking: &meshpb.ZoneIngress_Networking{
		Address: p.addresses()[0], Port: p.listens(), AdvertisedAddress: at.address, AdvertisedPort: at.port}})
	if err != nil {
		return nil, nil, err
	}
	return &resources.Resource{Spec: spec, Labels: map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery},
		Key: resources.Key{Type: resources.TypeZoneIngress, Name: p.Metadata.Name}}, nil, nil
}

// place is where others reach a zone ingress.
type place struct {
	address string
	port    uint32
}

// advertised returns where other zones reach a pod that is a zone ingress, by the first Service that knows, or why that is
// not known.
func (p *Pod) advertised(services []*Service, node *Node, known map[string]host) (place, *Problem) {
	var first *Problem
	named := p.named()
	for _, s := range services {
		if !s.selects(p) || s.headless() {
			continue
		}
		for i := range s.Spec.Ports {
			if port := &s.Spec.Ports[i]; isTCP(port.Protocol) && p.listens() != 0 && port.target(named) == p.listens() {
				at, why := s.leadsTo(port, node, known)
				if why == nil {
					return at, nil
				}
				first = cmp.Or(first, why)
			}
		}
	}
	if first == nil {
		why := problem(ReasonNoAddress, "no Service leads to the port named %s of the pod: other zones do not reach it", ingressPort)
		first = &why
	}
	return place{}, first
}

// leadsTo returns where other zones reach a port of the Service.
func (s *Service) leadsTo(port *servicePort, node *Node, known map[string]host) (place, *Problem) {
	out, without := place{port: port.Port}, ""
	switch set := s.Metadata.Annotations[annotationPublicAddress]; {
	case set != "":
		out.address = set
		if text, has := s.Metadata.Annotations[annotationPublicPort]; has {
			out.port = portOf(text)
		}
		if ip, err := netip.ParseAddr(set); err != nil || ip.IsUnspecified() || out.port == 0 {
			why := problem(ReasonNoAddress, "Service %s: the annotations %s (%.100q) and %s (%.100q): want an IP address and a port",
				s.Metadata.Name, annotationPublicAddress, set, annotationPublicPort, s.Metadata.Annotations[annotationPublicPort])
			return place{}, &why
		}
	case s.Spec.Type == "LoadBalancer":
		out.address = s.Status.LoadBalancer.address()
		without = "has no address of a load balancer yet: other zones do not reach this one until it has"
		if name := s.Status.LoadBalancer.host(); out.address == "" && name != "" {
			out.address = known[name].address
			without = fmt.Sprintf("has a load balancer with the name %.253s, which does not resolve to an address that others reach", name)
			if err := known[name].failed; err != nil {
				without += fmt.Sprintf(": %v", err)
			}
		}
	case s.Spec.Type == "NodePort":
		out = place{address: node.address(), port: port.NodePort}
		without = "is of type NodePort, and the pod's node has no address"
	default:
		without = "is of type ClusterIP, which other zones do not reach: choose another type, or set ingress.address to where they do"
	}
	if out.address == "" || out.port == 0 {
		why := problem(ReasonNoAddress, "Service %s %s", s.Metadata.Name, without)
		return place{}, &why
	}
	return out, nil
}

// address returns the first IP address of a load balancer.
func (b *loadBalancer) address() string {
	for _, one := range b.Ingress {
		if ip, err := netip.ParseAddr(one.IP); err == nil && reaches(ip) {
			return one.IP
		}
	}
	return ""
}

// reaches reports whether an address may be that of a load balancer for other machines: not one that means each caller's
// own machine, or its own network.
func reaches(ip netip.Addr) bool { return ip.Unmap().IsGlobalUnicast() && ip.Zone() == "" }

// host returns the first name of a load balancer.
func (b *loadBalancer) host() string {
	for _, one := range b.Ingress {
		if one.Hostname != "" {
			return one.Hostname
		}
	}
	return ""
}

// address returns the address of a node that most reach: the external one, if it has one.
func (n *Node) address() string {
	if n == nil {
		return ""
	}
	found := map[string]string{}
	for _, one := range n.Status.Addresses {
		if _, err := netip.ParseAddr(one.Address); err == nil && found[one.Type] == "" {
			found[one.Type] = one.Address
		}
	}
	return cmp.Or(found["ExternalIP"], found["InternalIP"])
}
