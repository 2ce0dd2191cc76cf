package injection

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Bootstrap describes the bootstrap of a pod's proxy.
type Bootstrap struct {
	// Mesh, Namespace and Name are those of the pod's Dataplane. The pod's name takes the place of Name later.
	Mesh, Namespace, Name string
	// XDSAddress and XDSCA are as in Settings.
	XDSAddress, XDSCA string
	// TokenFile is the absolute path of the proxy's token, which the kubelet renews.
	TokenFile string
	// AdminAddress is that of the proxy's admin interface, ReadyAddress that of the listener for its readiness.
	AdminAddress, ReadyAddress string
	// Drain limits how long TCP connections of clients that lost access stay open.
	Drain      time.Duration
	ClusterDNS bool
	// Probes are what the proxy asks the application for the kubelet, which asks it at ProbeAddress. The pod's IP takes the
	// place of Application later; IPv6 reports whether it is one of IPv6.
	Probes                    []Probe
	ProbeAddress, Application string
	IPv6                      bool
}

const (
	// reserved is the prefix of the variables of the proxy's container that are ours.
	reserved = "CAUSEWAY_"
	// nameVariable and addressVariable are the variables with what is known only once the pod exists.
	nameVariable, addressVariable = reserved + "POD_NAME", reserved + "POD_IP"
	// maxArgument limits an argument, and a variable, of a process, in bytes. Source: Linux, MAX_ARG_STRLEN with its end.
	maxArgument = 128<<10 - 1
	// maxName and maxAddress are the longest values of the two variables.
	maxName, maxAddress = 253, 45
)

// bootstrap returns the bootstrap of the pod's proxy as an argument of its container.
func bootstrap(o *options, s *Settings, ns Namespace, probes []Probe) (string, error) {
	everywhere := "0.0.0.0"
	if s.IPv6 {
		everywhere = "::"
	}
	at := func(port uint32) string { return net.JoinHostPort(everywhere, strconv.Itoa(int(port))) }
	// The nonce makes them texts that nobody can have written into the pod.
	name, address := "causeway-pod-name-"+s.Nonce, "causeway-pod-ip-"+s.Nonce
	b := &Bootstrap{Mesh: o.mesh, Namespace: ns.Name, Name: name, XDSAddress: s.XDSAddress, XDSCA: s.XDSCA, TokenFile: tokenPath + "/token",
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", adminPort), ReadyAddress: at(readyPort), Drain: o.drain, ClusterDNS: s.ClusterDNS}
	if len(probes) > 0 {
		b.Probes, b.ProbeAddress, b.Application, b.IPv6 = probes, at(o.probePort), address, s.IPv6
	}
	raw, err := s.Bootstrap(b)
	if err != nil {
		return "", fmt.Errorf("%w: its proxy cannot be configured: %w", ErrRefused, err)
	}
	text := string(raw)
	if err := fits(len(text) + maxName*strings.Count(text, name) + maxAddress*strings.Count(text, address)); err != nil {
		return "", err
	}
	// Of two dollars, Kubernetes leaves one, whatever follows.
	return strings.NewReplacer("$", "$$", name, "$("+nameVariable+")", address, "$("+addressVariable+")").Replace(text), nil
}

// fits returns an error if an argument or a variable is too long for a process.
func fits(size int) error {
	if size <= maxArgument {
		return nil
	}
	return fmt.Errorf("%w: the configuration of its proxy takes up to %d bytes, and a container's argument has room for %d: "+
		"give its containers fewer probes and hooks, or shorter ones", ErrRefused, size, maxArgument)
}
