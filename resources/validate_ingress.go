package resources

import (
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// zoneIngress checks that the address is an IP address, because proxies of other zones dial it directly. A peer's
// address may be a DNS name; it is stored, but not sent to proxies.
func (v *validation) zoneIngress(z *meshpb.ZoneIngress) {
	at := top("networking")
	n := z.GetNetworking()
	if n == nil {
		v.fail(at, "is required")
		return
	}
	if v.peer {
		return
	}
	v.ingressAddress(n.GetAddress(), at.field("address"))
	v.port(n.GetPort(), at.field("port"))
	if n.GetAdvertisedAddress() != "" {
		v.ingressAddress(n.GetAdvertisedAddress(), at.field("advertisedAddress"))
	}
	if n.GetAdvertisedPort() != 0 {
		v.port(n.GetAdvertisedPort(), at.field("advertisedPort"))
	}
}

func (v *validation) ingressAddress(s string, at *fieldPath) {
	ip, err := ParseIP(s)
	switch {
	case err != nil:
		v.fail(at, "%q is not an IP address", shorten(s))
	case ip.IsUnspecified():
		v.fail(at, "%s is unreachable for others: give the address that they reach", s)
	}
}
