package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// nearby is what a proxy must not be led to on its machine, though an agent beside it may have its spans, metrics and
// logs: it would speak to the server and to the admin interface as a program of the machine does.
type nearby struct {
	own OwnFunc
	// admin is the port of the proxy's admin interface, on loopback; 0 if unknown.
	admin uint32
}

func (t *target) nearby() nearby { return nearby{t.own, t.measured.adminPort} }

// refuses returns why a proxy does not connect to a collector, or nil. A name may lead to the machine itself.
func (n *nearby) refuses(host string, port uint32) error {
	at := endpoint{host, port}
	ip, err := resources.ParseIP(host)
	here := err != nil || at.loopback() || ip.Unmap().IsUnspecified()
	switch {
	case n.own != nil && n.own(host, port):
		return fmt.Errorf("%s may be a port of the zone server, not of a collector: use an IP address, or another port", at)
	case here && port != 0 && port == n.admin:
		return fmt.Errorf("%s may be the proxy's admin interface, not a collector: use an IP address, or another port", at)
	}
	return nil
}
