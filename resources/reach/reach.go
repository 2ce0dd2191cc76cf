package reach

import (
	"fmt"
	"net/netip"
	"strings"
)

// never lists what NeverPassed returns, each with its reason. The first that contains an address counts.
var never = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), isLoopback},
	{netip.MustParsePrefix("169.254.0.0/16"), isLinkLocal},
	{netip.MustParsePrefix("0.0.0.0/8"), isUnspecified},
	{netip.MustParsePrefix("224.0.0.0/4"), isMulticast},
	{netip.MustParsePrefix("::1/128"), isLoopback},
	{netip.MustParsePrefix("::/128"), isUnspecified},
	{netip.MustParsePrefix("fe80::/10"), isLinkLocal},
	{netip.MustParsePrefix("ff00::/8"), isMulticast},
	{netip.MustParsePrefix("::ffff:0:0/96"), "is an IPv4 address in another form"},
	{netip.MustParsePrefix("64:ff9b::127.0.0.0/104"), isLoopback},
	{netip.MustParsePrefix("64:ff9b::169.254.0.0/112"), isLinkLocal},
	{netip.MustParsePrefix("fd00:ec2::/32"), isMetadata},      // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), isMetadata},   // Google
	{netip.MustParsePrefix("168.63.129.16/32"), isMetadata},   // Azure
	{netip.MustParsePrefix("100.100.100.200/32"), isMetadata}, // Alibaba
	{netip.MustParsePrefix("64:ff9b::168.63.129.16/128"), isMetadata},
	{netip.MustParsePrefix("64:ff9b::100.100.100.200/128"), isMetadata},
}

const (
	isLoopback    = "is loopback"
	isLinkLocal   = "is link-local"
	isUnspecified = "is every address"
	isMulticast   = "is multicast"
	isMetadata    = "is a cloud's metadata service"
)

// NeverPassed returns the destinations outside the mesh to which no proxy connects for its application, whatever a
// policy says: the machine itself, where the server and the proxy trust loopback callers, link-local addresses, and
// clouds' metadata services with their credentials, at any address.
func NeverPassed() []netip.Prefix {
	out := make([]netip.Prefix, len(never))
	for i := range never {
		out[i] = never[i].prefix
	}
	return out
}

// NoApplication returns the reason why no application can be at an address, or "". Such an address belongs to the
// machine or the cloud, for example its metadata with credentials, and is not for a proxy's clients. Loopback passes:
// an application may be there, and an agent beside a proxy.
func NoApplication(ip netip.Addr) string {
	if why := reason(ip); why != isLoopback {
		return why
	}
	return ""
}

// NoDestination returns the reason why nobody may lead other owners' proxies to a host, or "": what NoApplication
// refuses, loopback, and a name that the proxy's machine may read as its own. A full domain name passes, because only
// the proxy learns where it leads.
func NoDestination(host string) string {
	ip, err := netip.ParseAddr(host)
	if err == nil {
		return reason(ip)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || last == name || last == "" || last[0] < 'a' || last[0] > 'z' {
		return "may be the proxy's own machine: want a full domain name or an IP address"
	}
	return ""
}

func reason(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	for i := range never {
		if never[i].prefix.Contains(ip) {
			return never[i].reason
		}
	}
	return ""
}

// Within returns why a range of addresses is one to which proxies let nothing through, or "".
func Within(prefix netip.Prefix) string {
	for _, n := range never {
		if n.prefix.Bits() <= prefix.Bits() && n.prefix.Contains(prefix.Addr()) {
			return fmt.Sprintf("is within %s, where proxies let nothing through", n.prefix)
		}
	}
	return ""
}
