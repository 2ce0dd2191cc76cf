package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// OwnFunc reports whether an address and port would lead a proxy on the server's machine to a port of this server that
// trusts whoever is on loopback.
type OwnFunc func(address string, port uint32) bool

// checkServices refuses a Dataplane whose proxy would lead its callers to this server: what comes from there on loopback,
// byte by byte, would be taken for a program of the machine.
func (f OwnFunc) checkServices(t *target) error {
	if f == nil || t.proxyless {
		return nil
	}
	for i := range t.inbounds {
		if at := t.inbounds[i].service; f(at.address, at.port) {
			return fmt.Errorf("%w: %s: networking.inbound: %s is a port of the zone's server itself, and no application: set another servicePort", ErrConfig, t.dataplane.Key, at)
		}
	}
	return nil
}

// leadsHere reports whether an endpoint of a MeshExternalService is this server.
func (f OwnFunc) leadsHere(endpoints []resources.ExternalEndpoint) (at string, here bool) {
	for _, e := range endpoints {
		if f != nil && f(e.Address, e.Port) {
			return endpoint{e.Address, e.Port}.String(), true
		}
	}
	return "", false
}
