package injection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ownPort is a port of the proxy, with its purpose.
type ownPort struct {
	port uint32
	does string
}

// ownPorts are the ports of the proxy.
func (o *options) ownPorts() []ownPort {
	out := []ownPort{{adminPort, "has its admin interface"}, {outboundPort, "takes what goes out"}, {inboundPort, "takes what comes in"},
		{ShownPort, "shows its state to the zone"}, {readyPort, "says whether it is ready"}, {ProofPort, "proves its capture"}}
	if o.probePort != 0 {
		out = append(out, ownPort{o.probePort, "answers for the application's probes"})
	}
	return out
}

// IsProxyPort reports whether a port is the proxy's in every pod. Nothing else that the proxy is told may listen there: with an
// answer at ProofPort, it would pass for captured.
func IsProxyPort(port uint32) bool { return (&options{probePort: defaultProbePort}).owns(port) != "" }

// owns returns the proxy's purpose for a port; empty if it is not the proxy's.
func (o *options) owns(port uint32) string {
	for _, own := range o.ownPorts() {
		if own.port == port {
			return own.does
		}
	}
	return ""
}

// otherPort says which port to choose instead of one that the proxy owns. Only that for probes can be another.
func (o *options) otherPort(port uint32) string {
	if port == o.probePort {
		return "choose another, or another for the proxy by " + annotationProbePort
	}
	return "choose another"
}

// goesPast reports whether the kubelet reaches a port without the proxy.
func (o *options) goesPast(port uint32) bool {
	return port == readyPort ||
		slices.ContainsFunc(o.notInPorts, func(ports string) bool { return within(ports, port) })
}

// conflicts returns why the proxy and the pod are incompatible.
func (p *pod) conflicts(o *options) error {
	if user := p.Spec.SecurityContext.RunAsUser; user != nil && *user == proxyUser {
		return fmt.Errorf("spec.securityContext.runAsUser is %d, the proxy's user, whose connections are not captured: choose another", proxyUser)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if slices.Contains(ourContainers, c.Name) {
			continue
		}
		if user := c.SecurityContext.RunAsUser; user != nil && *user == proxyUser {
			return fmt.Errorf("container %q runs as user %d, the proxy's, whose connections are not captured: choose another", c.Name, proxyUser)
		}
		for _, port := range c.Ports {
			if does := o.owns(port.ContainerPort); does != "" && port.Protocol != "UDP" && port.Protocol != "SCTP" {
				return fmt.Errorf("container %q has port %d, on which the proxy %s: %s", c.Name, port.ContainerPort, does,
					o.otherPort(port.ContainerPort))
			}
		}
	}
	for _, c := range p.Spec.Containers {
		if slices.Contains(ourContainers, c.Name) {
			return fmt.Errorf("container %q has the name of a part of the proxy: choose another", c.Name)
		}
	}
	for _, ports := range o.notInPorts {
		for _, own := range o.ownPorts() {
			if own.port != readyPort && own.port != o.probePort && within(ports, own.port) {
				return fmt.Errorf("annotation %s has %s, in which the proxy has its port %d", annotationNotInboundPorts, ports,
					own.port)
			}
		}
	}
	return nil
}

// within reports whether a port is in a range that isPort has accepted.
func within(ports string, port uint32) bool {
	first, last, isRange := strings.Cut(ports, "-")
	if !isRange {
		last = first
	}
	a, _ := strconv.ParseUint(first, 10, 16)
	b, _ := strconv.ParseUint(last, 10, 16)
	return a <= uint64(port) && uint64(port) <= b
}

// warn adds what in the pod will not work, or weakens capture.
func (p *pod) warn(out *Result) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if slices.Contains(ourContainers, c.Name) {
			continue
		}
		caps := c.SecurityContext.Capabilities.Add
		if c.SecurityContext.Privileged || slices.Contains(caps, "NET_ADMIN") || slices.Contains(caps, "ALL") {
			out.warnf("container %q may change the rules of capture (NET_ADMIN)", c.Name)
		}
	}
}
