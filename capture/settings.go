package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

const (
	// InboundPort is the default port of the proxy's listener for incoming connections. A Dataplane names the same in
	// networking.transparentProxying.redirectPortInbound.
	InboundPort = 15006
	// OutboundPort is the default port of the proxy's listener for outgoing connections; redirectPortOutbound of a
	// Dataplane.
	OutboundPort = 15001
	// maxEntries limits each list of Settings: each entry is a rule that new connections traverse.
	maxEntries = 64
)

// Settings configure a capture.
type Settings struct {
	// ProxyUser is the user of the proxy, whose own connections are not redirected. No other program may run as it.
	ProxyUser uint32 `json:"proxyUser"`
	// InboundPort and OutboundPort are the proxy's listeners for redirected connections; 0 disables that direction.
	InboundPort  uint16 `json:"inboundPort,omitempty"`
	OutboundPort uint16 `json:"outboundPort,omitempty"`
	// DNSPort is the loopback port on which the proxy answers DNS. Queries of the machine's own processes, by UDP and
	// TCP, to port 53 of any server go there; 0 leaves them alone.
	DNSPort uint16 `json:"dnsPort,omitempty"`
	// ProofPort is a port on which nobody listens. Connections to it from other machines go to ProofTo, a port of the
	// proxy, whoever they come from. One that is answered there proves that the rules are installed. 0 for none.
	ProofPort uint16 `json:"proofPort,omitempty"`
	ProofTo   uint16 `json:"proofTo,omitempty"`
	// InboundPorts limits the captured incoming ports; empty means all.
	InboundPorts []Ports `json:"inboundPorts,omitempty"`
	// ExcludeInboundPorts, and connections from ExcludeInboundAddresses, reach the application without the proxy.
	ExcludeInboundPorts     []Ports        `json:"excludeInboundPorts,omitempty"`
	ExcludeInboundAddresses []netip.Prefix `json:"excludeInboundAddresses,omitempty"`
	// ExcludeOutboundPorts and ExcludeOutboundAddresses are reached without the proxy.
	ExcludeOutboundPorts     []Ports        `json:"excludeOutboundPorts,omitempty"`
	ExcludeOutboundAddresses []netip.Prefix `json:"excludeOutboundAddresses,omitempty"`
	// ExcludeUsers are other users whose connections are not redirected.
	ExcludeUsers []uint32 `json:"excludeUsers,omitempty"`
	// GuardPorts are ports of the application that only the proxy may reach: connections of the machine's other users,
	// and UDP from anywhere, are refused.
	GuardPorts []Ports `json:"guardPorts,omitempty"`
}

// ParseSettings parses settings in JSON, as they marshal. Unknown fields are refused: they could be exclusions of
// another version. Errors wrap ErrSettings.
func ParseSettings(text string) (*Settings, error) {
	out := &Settings{}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more than one document", ErrSettings)
	}
	return out, out.check()
}

// Ports is a range of ports, both ends included. Its text is 8080 or 9000-9010.
type Ports struct{ First, Last uint16 }

// ParsePorts parses a port or a range.
func ParsePorts(text string) (Ports, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	if errA != nil || errB != nil || a == 0 || a > b {
		return Ports{}, fmt.Errorf("%q: want a port from 1 to 65535, or a range such as 9000-9010", text)
	}
	return Ports{uint16(a), uint16(b)}, nil
}

// String returns the text that ParsePorts reads.
func (p Ports) String() string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// MarshalJSON implements json.Marshaler.
func (p Ports) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Ports) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	parsed, err := ParsePorts(text)
	*p = parsed
	return err
}

func (p Ports) has(port uint16) bool { return port != 0 && p.First <= port && port <= p.Last }

func (p Ports) overlaps(other Ports) bool { return p.First <= other.Last && other.First <= p.Last }

// ParsePrefix parses a range of addresses, or one address.
func ParsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return p, fmt.Errorf("%q: want an IP address, or a range such as 10.0.0.0/8 or fd00::/8", text)
	}
	return p.Masked(), nil
}

// LookupUser returns the ID of a user, given by name or by ID.
func LookupUser(text string) (uint32, error) {
	if id, err := strconv.ParseUint(text, 10, 32); err == nil && id < 1<<32-1 {
		return uint32(id), nil
	}
	u, err := user.Lookup(text)
	if err != nil {
		return 0, fmt.Errorf("unknown user %q: create it (useradd --system %s), or use a numeric ID", text, text)
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(id), err
}

// check reports settings that would not have their stated effect. Errors wrap ErrSettings.
func (s *Settings) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrSettings, fmt.Errorf(format, args...))
	}
	switch {
	case s.ProxyUser == 0:
		return wrong("the proxy's user is root, whose connections would all bypass it: run the proxy as a separate user")
	case s.InboundPort == 0 && s.OutboundPort == 0:
		return wrong("neither an inbound nor an outbound port: nothing would be captured")
	case s.InboundPort != 0 && s.InboundPort == s.OutboundPort:
		return wrong("inbound and outbound port are both %d: the proxy has a listener for each", s.InboundPort)
	case s.InboundPort == 0 && len(s.InboundPorts)+len(s.ExcludeInboundPorts)+len(s.ExcludeInboundAddresses) > 0:
		return wrong("ports or addresses of inbound connections without an inbound port, to which they would go")
	case s.InboundPort == 0 && len(s.GuardPorts) > 0:
		return wrong("guarded ports without an inbound port: they would be unreachable")
	case s.OutboundPort == 0 && len(s.ExcludeOutboundPorts)+len(s.ExcludeOutboundAddresses) > 0:
		return wrong("exclusions of outbound connections without an outbound port")
	}
	for _, n := range []int{len(s.InboundPorts), len(s.ExcludeInboundPorts), len(s.ExcludeInboundAddresses),
		len(s.ExcludeOutboundPorts), len(s.ExcludeOutboundAddresses), len(s.ExcludeUsers), len(s.GuardPorts)} {
		if n > maxEntries {
			return wrong("a list has %d entries: at most %d; use ranges", n, maxEntries)
		}
	}
	if why := s.wrongProof(); why != "" {
		return wrong("%s", why)
	}
	for _, g := range s.GuardPorts {
		if slices.ContainsFunc([]uint16{s.InboundPort, s.OutboundPort, s.DNSPort, s.ProofPort, s.ProofTo}, g.has) {
			return wrong("guarded port %s is the proxy's own: guard the application's", g)
		}
		for _, e := range s.ExcludeInboundPorts {
			if g.overlaps(e) {
				return wrong("port %s is both guarded and excluded: choose one", e)
			}
		}
		if !s.captures(g) {
			return wrong("guarded port %s is not among the inbound ports: it would be unreachable", g)
		}
	}
	return nil
}

// wrongProof returns why the port that proves the capture does not; empty if it does, or there is none.
func (s *Settings) wrongProof() string {
	switch {
	case s.ProofPort == 0 && s.ProofTo == 0:
		return ""
	case s.ProofPort == 0 || s.ProofTo == 0:
		return fmt.Sprintf("one of the port that proves the capture (%d) and where it leads (%d): want both", s.ProofPort, s.ProofTo)
	case s.InboundPort == 0:
		return "a port that proves the capture without an inbound port: it would prove nothing about it"
	case slices.Contains([]uint16{s.ProofTo, s.InboundPort, s.OutboundPort, s.DNSPort}, s.ProofPort):
		return fmt.Sprintf("port %d, which proves the capture, is the proxy's: nobody may listen on it", s.ProofPort)
	}
	return ""
}

// captures reports whether one of InboundPorts contains a whole range.
func (s *Settings) captures(g Ports) bool {
	for _, p := range s.InboundPorts {
		if p.First <= g.First && g.Last <= p.Last {
			return true
		}
	}
	return len(s.InboundPorts) == 0
}
