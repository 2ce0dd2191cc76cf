package resources

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// PassthroughConf is the `default` of a MeshPassthrough: the connections out of the mesh that a capturing proxy lets
// through.
type PassthroughConf struct {
	// PassthroughMode is one of the Passthrough constants, PassthroughNone unless set.
	PassthroughMode string `json:"passthroughMode,omitempty"`
	// AppendMatch lists what PassthroughMatched lets through. Merged policies add their items.
	AppendMatch []PassthroughMatch `json:"appendMatch,omitempty"`
}

// Modes of a MeshPassthrough.
const (
	PassthroughAll     = "All"
	PassthroughMatched = "Matched"
	PassthroughNone    = "None"
)

// Types of PassthroughMatch.
const (
	PassthroughDomain = "Domain"
	PassthroughIP     = "IP"
	PassthroughCIDR   = "CIDR"
)

// PassthroughMatch is a destination outside the mesh. A Domain is a host name, or `*.` and the end of one, and is
// matched against the TLS server name or the HTTP Host. IP and CIDR are matched against the address that the
// application dialled.
type PassthroughMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	// Port is any port unless set.
	Port *uint32 `json:"port,omitempty"`
	// Protocol is tcp (the default, anything), tls, http, http2, grpc or mysql.
	Protocol string `json:"protocol,omitempty"`
}

// passthroughProtocols are the protocols of a PassthroughMatch; the first is the default.
var passthroughProtocols = []string{"tcp", "tls", "http", "http2", "grpc", "mysql"}

// ReadsHTTP reports whether only HTTP passes, so that proxies must distinguish it from other traffic.
func (m *PassthroughMatch) ReadsHTTP() bool {
	return slices.Contains([]string{"http", "http2", "grpc"}, m.Protocol)
}

// ReadsTLS reports whether only TLS passes.
func (m *PassthroughMatch) ReadsTLS() bool { return m.Protocol == "tls" }

// CheckMode returns why a mode is invalid, or "" if it is valid. An absent mode is PassthroughNone.
func (c *PassthroughConf) CheckMode() string {
	modes := []string{"", PassthroughAll, PassthroughMatched, PassthroughNone}
	if slices.Contains(modes, c.PassthroughMode) {
		return ""
	}
	return "want one of " + strings.Join(modes[1:], ", ") + ", got " + strconv.Quote(shorten(c.PassthroughMode))
}

// Prefix returns the addresses of an IP or CIDR.
func (m *PassthroughMatch) Prefix() (netip.Prefix, error) {
	if m.Type == PassthroughIP {
		ip, err := ParseIP(m.Value)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(m.Value)
	return prefix.Masked(), err
}

// isDomain reports whether a value is a host name, or `*.` and the end of one.
func isDomain(value string) bool {
	name := strings.TrimPrefix(value, "*.")
	return isSubdomain(name) && !looksNumeric(name) && (name == value || strings.Contains(name, "."))
}
