package portforward

import (
	"fmt"
	"net"
	"regexp"
	"strings"
)

// target is a port of a Service or of a pod.
type target struct{ namespace, object, port string }

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// targetOf reads HOST:PORT, where HOST is a name that the cluster's DNS knows: SERVICE.NAMESPACE.svc or
// POD.SERVICE.NAMESPACE.svc, each with or without the cluster's domain.
func targetOf(address string) (target, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return target{}, fmt.Errorf("%q: %w", address, err)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, one := range labels {
		if !label.MatchString(one) {
			return target{}, notInCluster(host)
		}
	}
	switch {
	case len(labels) >= 3 && labels[2] == "svc":
		return target{labels[1], "service/" + labels[0], port}, nil
	case len(labels) >= 4 && labels[3] == "svc":
		return target{labels[2], "pod/" + labels[0], port}, nil
	}
	return target{}, notInCluster(host)
}

func notInCluster(host string) error {
	return fmt.Errorf("%q is not a name in a cluster: want SERVICE.NAMESPACE.svc, or POD.SERVICE.NAMESPACE.svc", host)
}

// Check returns an error if no target in a cluster has this HOST:PORT.
func Check(address string) error {
	_, err := targetOf(address)
	return err
}
