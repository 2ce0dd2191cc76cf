package discovery

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// errTooBig reports a pod whose Dataplane no store can hold.
var errTooBig = errors.New("its Dataplane is larger than any store can hold: give the Pod fewer labels, or fewer ports")

// DataplaneOf returns the Dataplane of a pod, without the labels that the server computes, and the pod's problems. A
// pod without a proxy or an address, or that has ended, has no Dataplane. services are those of its namespace, ordered
// by name; node may be nil.
func DataplaneOf(p *Pod, services []*Service, node *Node) (*resources.Resource, []Problem, error) {
	is := p.proxy()
	switch {
	case is == nil:
		return nil, nil, nil
	case p.Spec.HostNetwork:
		return nil, []Problem{problem(ReasonHostNetwork, "the pod has hostNetwork, and its address is the node's: the mesh does "+
			"not know it")}, nil
	case !p.present():
		return nil, nil, nil
	}
	addresses := p.addresses()
	labels := labelsOf(p, node)
	in, problems := inboundsOf(p, is, services)
	problems = append(problems, p.notCaptured(is)...)
	networking := &meshpb.Dataplane_Networking{Address: addresses[0], Inbound: in, TransparentProxying: is.redirected(addresses)}
	if is.in != 0 && !slices.ContainsFunc(in, func(one *meshpb.Dataplane_Networking_Inbound) bool { return one.Port == injection.ShownPort }) {
		networking.Admin = &meshpb.EnvoyAdmin{Port: injection.ShownPort}
	}
	tags := carried(labels)
	if size := len(in) * textOf(tags); size > store.MaxResourceBytes { // before it takes that memory, many times
		return nil, problems, errTooBig
	}
	for _, one := range in {
		one.Tags = withEach(tags, one.Tags)
		if ip, err := netip.ParseAddr(addresses[0]); is.in != 0 && err == nil && ip.Is4() {
			one.ServiceAddress = addresses[0] // where it would be called without a mesh
		}
	}
	spec, err := resources.NewSpecOf(resources.TypeDataplane, &meshpb.Dataplane{Networking: networking})
	if err != nil {
		return nil, nil, err
	}
	return &resources.Resource{Spec: spec, Labels: labels, Key: resources.Key{Type: resources.TypeDataplane, Mesh: is.mesh,
		Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}}, problems, nil
}

// textOf returns the size of labels without what is around them, in bytes.
func textOf(labels map[string]string) (size int) {
	for key, value := range labels {
		size += len(key) + len(value)
	}
	return size
}

// withEach returns tags with those of one inbound.
func withEach(tags, own map[string]string) map[string]string {
	if len(own) == 0 {
		return tags
	}
	all := maps.Clone(tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, own)
	return all
}

// labelsOf returns the labels of a pod's Dataplane: the pod's own, its node's location, and its identity, which is the
// service account that the API server allowed. The workload's name contains the namespace, because workloads belong to
// the whole mesh, and anybody may name a service account as another namespace does.
func labelsOf(p *Pod, node *Node) map[string]string {
	labels := carried(p.Metadata.Labels)
	for _, key := range topology {
		delete(labels, key)
		if node != nil && node.Metadata.Labels[key] != "" {
			labels[key] = node.Metadata.Labels[key]
		}
	}
	account := p.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	labels[resources.LabelServiceAccount] = account
	labels[resources.LabelWorkload] = p.Metadata.Namespace + "." + account
	labels[resources.LabelManagedBy] = resources.ManagedByDiscovery
	return labels
}

// redirected returns how the pod's connections are redirected to its proxy; nil if they are not.
func (is *proxy) redirected(addresses []string) *meshpb.Dataplane_Networking_TransparentProxying {
	if is.in == 0 && is.out == 0 {
		return nil
	}
	type mode = meshpb.Dataplane_Networking_TransparentProxying_IpFamilyMode
	families := [2]bool{}
	for _, text := range addresses {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
			families[0] = true
		} else if err == nil {
			families[1] = true
		}
	}
	modes := map[[2]bool]mode{
		{true, false}: meshpb.Dataplane_Networking_TransparentProxying_IPv4,
		{false, true}: meshpb.Dataplane_Networking_TransparentProxying_IPv6,
		{true, true}:  meshpb.Dataplane_Networking_TransparentProxying_DualStack,
	}
	return &meshpb.Dataplane_Networking_TransparentProxying{RedirectPortInbound: is.in, RedirectPortOutbound: is.out,
		IpFamilyMode: modes[families]}
}

// inbounds collects the inbounds of one pod.
type inbounds struct {
	pod      *Pod
	is       *proxy
	past     []portRange
	of       map[uint32]*meshpb.Dataplane_Networking_Inbound
	problems []Problem
}

// inboundsOf returns an inbound for each port of the pod that a Service leads to, or that a container declares, in the
// order of their numbers. Other ports cannot be called.
func inboundsOf(p *Pod, is *proxy, services []*Service) ([]*meshpb.Dataplane_Networking_Inbound, []Problem) {
	all := inbounds{pod: p, is: is, past: is.bypassed(), of: map[uint32]*meshpb.Dataplane_Networking_Inbound{}}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if isTCP(port.Protocol) && !all.goesPast(port.ContainerPort) {
				all.add(port.ContainerPort)
			}
		}
	}
	all.byServices(services)
	out := make([]*meshpb.Dataplane_Networking_Inbound, 0, len(all.of))
	for _, in := range all.of {
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b *meshpb.Dataplane_Networking_Inbound) int { return int(a.Port) - int(b.Port) })
	if len(out) > resources.MaxInbounds {
		all.problems = append(all.problems, problem(ReasonTooMany, "the pod has more ports than the %d that a proxy supports: only the first ones count",
			resources.MaxInbounds))
		out = out[:resources.MaxInbounds]
	}
	all.name(out)
	return out, all.problems
}

// goesPast reports whether traffic to a port bypasses the proxy.
func (all *inbounds) goesPast(port uint32) bool {
	return slices.ContainsFunc(all.past, func(ports portRange) bool { return ports.has(port) })
}

// byServices adds the ports that Services lead to, except ignored Services, and those that cannot be in the mesh.
func (all *inbounds) byServices(services []*Service) {
	named := all.pod.named()
	for _, s := range services {
		if !s.selects(all.pod) || s.ignored() || s.crowded() {
			continue
		}
		for i := range s.Spec.Ports {
			port := &s.Spec.Ports[i]
			number := port.target(named)
			if !isTCP(port.Protocol) || number == 0 || !all.free(number, s, port) {
				continue
			}
			all.add(number)
			if speaksFirst[strings.ToLower(port.AppProtocol)] {
				all.of[number].Tags = map[string]string{resources.TagServerFirst: "true"}
			}
			if s.Spec.PublishNotReadyAddresses && !all.pod.leaving() {
				all.of[number].State = meshpb.Dataplane_Networking_Inbound_Ready
			}
		}
	}
}

// speaksFirst are the protocols of Services in which the server sends data before its client does. Source: IANA's service
// names, which Kubernetes takes, and mariadb.
var speaksFirst = map[string]bool{
	"ftp": true, "imap": true, "mariadb": true, "mysql": true, "nntp": true, "pop3": true, "rfb": true, "smtp": true,
	"ssh": true, "submission": true,
}

// free reports whether the proxy can receive a Service's traffic on a port, and notes why not.
func (all *inbounds) free(number uint32, s *Service, port *servicePort) bool {
	var why Problem
	past := all.goesPast(number)
	switch {
	case number == all.is.in || number == all.is.out || all.is.proof && number == injection.ProofPort,
		past && injection.IsProxyPort(number): // of its readiness, or for probes: no annotation has it
		why = problem(ReasonPort, "port %d of Service %s leads to port %d of the pod, which is the "+
			"proxy's: let the application listen on another", port.Port, s.Metadata.Name, number)
	case past:
		why = problem(ReasonPast, "port %d of Service %s leads to port %d of the pod, which goes past "+
			"the proxy: callers in the mesh do not reach it; leave it out of traffic.kuma.io/exclude-inbound-ports", port.Port,
			s.Metadata.Name, number)
	default:
		return true
	}
	if len(all.problems) < maxProblems {
		all.problems = append(all.problems, why)
	}
	return false
}

func (all *inbounds) add(number uint32) {
	if all.of[number] != nil || number == 0 || number == all.is.in || number == all.is.out {
		return
	}
	in := &meshpb.Dataplane_Networking_Inbound{Port: number}
	if !all.pod.ready() {
		in.State = meshpb.Dataplane_Networking_Inbound_NotReady
	}
	all.of[number] = in
}

// name gives inbounds the names of their ports in the pod, each once.
func (all *inbounds) name(list []*meshpb.Dataplane_Networking_Inbound) {
	taken := map[string]bool{}
	for _, in := range list {
		for _, c := range all.pod.Spec.Containers {
			for _, port := range c.Ports {
				if isTCP(port.Protocol) && port.ContainerPort == in.Port && in.Name == "" && !taken[port.Name] {
					in.Name = port.Name
				}
			}
		}
		taken[in.Name] = in.Name != ""
	}
}

// target returns the pod's port for a Service's port; zero if the pod has none of that name. named are those of the pod.
func (port *servicePort) target(named map[string]uint32) uint32 {
	number, name := port.targetPort()
	if name == "" {
		return number
	}
	return named[name]
}

func isTCP(protocol string) bool { return protocol == "" || protocol == "TCP" }
