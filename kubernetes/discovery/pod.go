package discovery

import (
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

const (
	// conditionReady is the condition of a pod that readiness probes and gates decide.
	conditionReady = "Ready"
	// alwaysRestarts is the restart policy of a native sidecar.
	alwaysRestarts = "Always"
)

// proxy is what injection added to a pod.
type proxy struct {
	mesh string
	// in and out are the ports to which connections are redirected; zero without capture.
	in, out uint32
	// verified means that the network plugin of the node captures, and that the pod proves it before the application starts.
	verified bool
	// proof means that the proof is an answer at injection.ProofPort, which therefore leads to the proxy.
	proof bool
	// past are the ports, and ranges of ports, that bypass the proxy.
	past []string
}

// proxy returns the proxy of a pod, or nil. It was decided when the pod was created: containers cannot change later, as
// labels and annotations can.
func (p *Pod) proxy() *proxy {
	if r := p.record(); r != nil {
		return &proxy{mesh: r.Mesh, in: uint32(r.InboundPort), out: uint32(r.OutboundPort), verified: r.Plugin, proof: r.Plugin,
			past: r.PastInbound}
	}
	return p.earlierProxy()
}

// record returns what injection decided about the pod; nil if it did not, or was of an earlier version.
func (p *Pod) record() *injection.Record {
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.Name == injection.ProxyName && c.RestartPolicy == alwaysRestarts {
			return c.Record
		}
	}
	return nil
}

// earlierProxy returns the proxy of a pod that an earlier version injected, which is in the arguments of two init containers.
func (p *Pod) earlierProxy() *proxy {
	var out *proxy
	has := false
	for i := range p.Spec.InitContainers {
		switch c := &p.Spec.InitContainers[i]; c.Name {
		case injection.BootstrapName:
			out = &proxy{mesh: argument(c.Args, "--mesh")}
		case injection.CaptureName:
			if out != nil {
				out.verified = slices.Contains(c.Args, "verify")
				out.in, out.out = portOf(argument(c.Args, "--inbound-port")), portOf(argument(c.Args, "--outbound-port"))
				out.past = strings.Split(argument(c.Args, "--exclude-inbound-ports"), ",")
			}
		case injection.ProxyName:
			has = c.RestartPolicy == alwaysRestarts
		}
	}
	if !has || out == nil || out.mesh == "" || len(out.past) > injection.MaxPast {
		return nil
	}
	return out
}

// argument returns the value that follows a flag.
func argument(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func portOf(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// portRange is a range of ports.
type portRange struct{ first, last uint32 }

func (r portRange) has(port uint32) bool { return r.first <= port && port <= r.last }

// bypassed returns the ports that bypass the proxy.
func (is *proxy) bypassed() []portRange {
	out := make([]portRange, 0, len(is.past))
	for _, ports := range is.past {
		first, last, isRange := strings.Cut(strings.TrimSpace(ports), "-")
		if !isRange {
			last = first
		}
		if one := (portRange{portOf(first), portOf(last)}); one.first > 0 {
			out = append(out, one)
		}
	}
	return out
}

// named returns the ports of a pod that have a name.
func (p *Pod) named() map[string]uint32 {
	out := map[string]uint32{}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if _, has := out[port.Name]; !has && port.Name != "" && isTCP(port.Protocol) {
				out[port.Name] = port.ContainerPort
			}
		}
	}
	return out
}

// addresses returns the addresses of a pod, of all families.
func (p *Pod) addresses() []string {
	var out []string
	for _, one := range p.Status.PodIPs {
		if one.IP != "" && !slices.Contains(out, one.IP) {
			out = append(out, one.IP)
		}
	}
	if len(out) == 0 && p.Status.PodIP != "" {
		out = append(out, p.Status.PodIP)
	}
	return out
}

// over reports whether the pod has ended, so that its address may be another's.
func (p *Pod) over() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// leaving reports whether the pod is being deleted: it may still answer, and gets nothing new.
func (p *Pod) leaving() bool { return p.Metadata.DeletionTimestamp != "" }

// ready reports whether the pod takes requests, according to its probes and gates.
func (p *Pod) ready() bool {
	return slices.Contains(p.Status.Conditions, podCondition{conditionReady, "True"}) && !p.leaving()
}

// present reports whether the pod has a proxy that can be reached.
func (p *Pod) present() bool {
	return p.proxy() != nil && !p.Spec.HostNetwork && !p.over() && len(p.addresses()) > 0
}

// begun reports whether a container runs, or has run.
func (s *containerStatus) begun() bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastState.Terminated != nil
}

// failed reports whether a container has failed, and has not succeeded since.
func (s *containerStatus) failed() bool {
	last := s.State.Terminated
	if last == nil {
		last = s.LastState.Terminated
	}
	return last != nil && last.ExitCode != 0
}

// unproven returns the status of the proxy if it runs, and the kubelet has not reached it at the port that proves capture;
// otherwise nil.
func (p *Pod) unproven() *containerStatus {
	if r := p.record(); r == nil || !r.Plugin || p.over() || p.leaving() {
		return nil
	}
	for i := range p.Status.InitContainerStatuses {
		if s := &p.Status.InitContainerStatuses[i]; s.Name == injection.ProxyName && !s.Started && s.State.Running != nil {
			return s
		}
	}
	return nil
}

// notCaptured returns the problem of a pod whose application does not start, because the container that captures its
// connections, or verified that in earlier versions, has failed.
func (p *Pod) notCaptured(is *proxy) []Problem {
	switch {
	case !slices.ContainsFunc(p.Status.InitContainerStatuses, func(s containerStatus) bool { return s.Name == injection.CaptureName }):
		return nil
	case is.verified:
		return []Problem{problem(ReasonNotCaptured, "the application does not start, because it is not verified that the pod is captured: "+
			"the log of container %s says why. If the pod's network was made without the plugin causeway-cni: once its DaemonSet "+
			"is ready on node %s, delete the pod, so that another takes its place", injection.CaptureName, p.Spec.NodeName)}
	}
	return []Problem{problem(ReasonNotCaptured, "the application does not start, because its connections cannot be captured: the log of "+
		"container %s says why", injection.CaptureName)}
}
