package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// OwnFunc reports whether an address or name, with a port, may lead a proxy on the server's machine to a port of this
// server that trusts loopback callers.
type OwnFunc func(address string, port uint32) bool

// checkServices refuses a Dataplane whose proxy would forward its clients to this server. Their bytes would arrive on
// loopback and pass for a local program's.
func (f OwnFunc) checkServices(t *target) error {
	if f == nil || t.proxyless {
		return nil
	}
	for i := range t.inbounds {
		if at := t.inbounds[i].service; f(at.address, at.port) {
			return fmt.Errorf("%w: %s: networking.inbound: %s is a port of the zone server, not of an application: set another servicePort", ErrConfig, t.dataplane.Key, at)
		}
	}
	return nil
}

// leadsHere returns the endpoint of a MeshExternalService that may be this server; "" if there is none.
func (f OwnFunc) leadsHere(endpoints []resources.ExternalEndpoint) string {
	for _, e := range endpoints {
		at := endpoint{e.Address, e.Port}
		switch {
		case f == nil || !f(e.Address, e.Port):
		case isIP(e.Address):
			return fmt.Sprintf("endpoints: %s is a port of the zone server", at)
		default:
			return fmt.Sprintf("endpoints: %s: port %d on loopback is the zone server, where a name may lead: use an IP address, or another port for the server", at, e.Port)
		}
	}
	return ""
}
