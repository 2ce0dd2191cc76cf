package capture

import "net/netip"

// hook is a point in the kernel at which rules apply.
type hook int

// The chains, in the order in which they are installed.
const (
	// prerouting redirects incoming connections.
	prerouting hook = iota
	// output redirects connections of the machine's own processes.
	output
	// guardInput and guardOutput refuse traffic that would reach a guarded port without the proxy.
	guardInput
	guardOutput
)

var hooks = []hook{prerouting, output, guardInput, guardOutput}

// String returns the name of the chain.
func (h hook) String() string {
	return [...]string{"prerouting", "output", "guard_input", "guard_output"}[h]
}

type protocol int

const (
	anyProtocol protocol = iota
	tcp
	udp
)

// verdict is the action for a packet that a rule matches.
type verdict int

const (
	pass verdict = iota
	redirect
	refuse
	// drop discards it silently.
	drop
)

// rule is one rule of a chain. All of its conditions hold.
type rule struct {
	protocol protocol
	user     *uint32 // the user of the dialling process
	notUser  *uint32
	from, to netip.Prefix // the zero value is any
	ports    Ports        // of the destination; the zero value is any
	local    bool         // the destination is an address of this machine
	outside  bool         // it arrived on an interface other than loopback
	original bool         // it is not a reply

	verdict  verdict
	redirect uint16
	// note describes the rule, for readers of the rule list.
	note string
}

// ownSource is the address from which the proxy dials an application on an address of the machine.
var ownSource = netip.MustParsePrefix("127.0.0.6/32")

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// rules returns the rules of each chain. The first rule that matches a connection decides.
func (s *Settings) rules() map[hook][]rule {
	out := map[hook][]rule{prerouting: s.inbound(), output: append(s.proxys(), s.outbound()...)}
	for _, p := range s.GuardPorts {
		out[guardInput] = append(out[guardInput],
			rule{protocol: tcp, outside: true, original: true, ports: p, verdict: refuse, note: "around the proxy"},
			rule{protocol: udp, original: true, ports: p, verdict: refuse, note: "around the proxy, by UDP"})
		out[guardOutput] = append(out[guardOutput], rule{protocol: tcp, local: true, original: true, notUser: &s.ProxyUser,
			ports: p, verdict: refuse, note: "around the proxy, from this machine"})
	}
	return out
}

// inbound redirects only connections to this machine: forwarded ones pass. Packets from a neighbour to loopback are
// dropped, as the kernel does without redirection. Otherwise the proxy would pass them to a listener for the machine's
// own processes, such as one that sends as its workload. For IPv6, the kernel drops them earlier.
func (s *Settings) inbound() (out []rule) {
	if s.InboundPort == 0 {
		return nil
	}
	out = append(out, rule{outside: true, to: loopback[0], verdict: drop, note: "to loopback, from elsewhere"})
	if s.ProofPort != 0 { // before exclusions, so that it stands for all rules, whoever asks
		out = append(out, rule{protocol: tcp, ports: Ports{s.ProofPort, s.ProofPort}, local: true, verdict: redirect, redirect: s.ProofTo,
			note: "proof of the capture"})
	}
	for _, p := range s.ExcludeInboundAddresses {
		out = append(out, rule{from: p, note: "excluded address"})
	}
	for _, p := range s.ExcludeInboundPorts {
		out = append(out, rule{protocol: tcp, ports: p, note: "excluded port"})
	}
	return append(out, s.toInbound(rule{note: "to the proxy"})...)
}

// toInbound redirects to the inbound listener.
func (s *Settings) toInbound(base rule) (out []rule) {
	base.protocol, base.local, base.verdict, base.redirect = tcp, true, redirect, s.InboundPort
	if len(s.InboundPorts) == 0 {
		return []rule{base}
	}
	for _, p := range s.InboundPorts {
		base.ports = p
		out = append(out, base)
	}
	return out
}

// proxys handles the proxy's own connections. One to a service that this machine also serves goes to the proxy's
// inbound listener, as on another machine; one to the application goes to loopback.
func (s *Settings) proxys() (out []rule) {
	if s.InboundPort != 0 {
		for _, p := range loopback {
			out = append(out, rule{user: &s.ProxyUser, to: p, note: "the proxy, to the application"})
		}
		out = append(out, rule{user: &s.ProxyUser, from: ownSource, note: "the proxy, to the application on an address"})
		for _, p := range s.ExcludeInboundPorts {
			out = append(out, rule{user: &s.ProxyUser, protocol: tcp, ports: p, note: "the proxy, to an excluded port"})
		}
		out = append(out, s.toInbound(rule{user: &s.ProxyUser, note: "the proxy, to a service of this machine"})...)
	}
	return append(out, rule{user: &s.ProxyUser, note: "the proxy, to others"})
}

func (s *Settings) outbound() (out []rule) {
	for i := range s.ExcludeUsers {
		out = append(out, rule{user: &s.ExcludeUsers[i], note: "excluded user"})
	}
	if s.DNSPort != 0 {
		for _, p := range []protocol{udp, tcp} {
			out = append(out, rule{protocol: p, ports: Ports{53, 53}, verdict: redirect, redirect: s.DNSPort,
				note: "DNS, to the proxy"})
		}
	}
	if s.OutboundPort == 0 {
		return out
	}
	out = append(out, rule{local: true, note: "within this machine"})
	for _, p := range s.ExcludeOutboundAddresses {
		out = append(out, rule{to: p, note: "excluded address"})
	}
	for _, p := range s.ExcludeOutboundPorts {
		out = append(out, rule{protocol: tcp, ports: p, note: "excluded port"})
	}
	return append(out, rule{protocol: tcp, verdict: redirect, redirect: s.OutboundPort, note: "to the proxy"})
}
