package rbac

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	setstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Envoy's RBAC judges a TCP connection by the client's first bytes, too late for an application that speaks first. On such an
// inbound the connection is judged when its handshake is over, by an expression over the client's URI SANs and the server name:
// whom the rules allow gets the application's address to be connected to, and nobody else gets any.

// maxExpression is how long an expression may be; Envoy's parser takes 100,000 characters (cel-cpp, ParserOptions).
const maxExpression = 90_000

// Keys of the connection's filter state. destinationKey is Envoy's, for clusters of the type ORIGINAL_DST.
const (
	allSANsKey     = "causeway.uri_sans"
	firstSANKey    = "causeway.uri_san"
	serverNameKey  = "causeway.server_name"
	destinationKey = "envoy.network.transport_socket.original_dst_address"
)

// peerSAN is the first URI SAN of the client's certificate; where it has none, the whole expression has no value.
const peerSAN = "connection.uri_san_peer_certificate"

// hasSAN holds for a certificate with a URI SAN. What comes behind it may ask for the SAN.
const hasSAN = "filter_state['" + firstSANKey + "'] != b'-'"

// wellFormed holds for a certificate with exactly one URI SAN, and that the SPIFFE ID of a workload: what inFront denies, said the
// other way round. Envoy joins several SANs by commas in the one of the two keys, and shows the first in the other.
const wellFormed = "filter_state['" + firstSANKey + "'] == filter_state['" + allSANsKey + "'] && " +
	peerSAN + ".matches('^spiffe://[a-z0-9._-]+(/[a-zA-Z0-9._-]+)+$') && !" + peerSAN + ".matches('/[.][.]?(/|$)')"

// HandshakeFilter is the filter (envoy.filters.network.set_filter_state) that gives a connection whom the rules allow the
// application's address, IP:port. It judges as NetworkFilters do, and leaves under HandshakeVerdict and HandshakePolicy what was decided
// and who did. The error says why rules cannot be written so; the filter then gives nobody an address.
func HandshakeFilter(rules matching.Rules, address string) (*setstatev3.Config, error) {
	verdict, err := handshakeVerdict(rules)
	if err != nil {
		return closedHandshake(NameHandshakeUnjudged), err
	}
	return &setstatev3.Config{OnDownstreamTlsHandshake: []*statev3.FilterStateValue{
		stateValue(allSANsKey, "envoy.string", "%DOWNSTREAM_PEER_URI_SAN%"),
		stateValue(firstSANKey, "envoy.string", "%CEL("+peerSAN+")%"),
		stateValue(serverNameKey, "envoy.string", "%REQUESTED_SERVER_NAME%"),
		stateValue(HandshakeVerdict, "envoy.string", "%CEL("+verdict+")%"),
		stateValue(destinationKey, "", "%CEL(filter_state['"+HandshakeVerdict+"'] == b'"+handshakeAllowed+"' ? '"+address+"' : 'denied')%"),
		stateValue(HandshakePolicy, "envoy.string", handshakeDecider(rules)),
	}}, nil
}

// DenyAllHandshake gives nobody an address: what an inbound has until its rules arrive.
func DenyAllHandshake() *setstatev3.Config { return closedHandshake(NameDefault) }

// closedHandshake gives nobody an address, and says who decided so.
func closedHandshake(name string) *setstatev3.Config {
	return &setstatev3.Config{OnDownstreamTlsHandshake: []*statev3.FilterStateValue{
		stateValue(HandshakeVerdict, "envoy.string", "denied"), stateValue(HandshakePolicy, "envoy.string", name),
	}}
}

// HandshakeWarnings says what the setting for applications that speak first means for an inbound, and whether its rules can be enforced
// so; none where it is not set.
func HandshakeWarnings(rules matching.Rules, in *matching.InboundPort) []string {
	if in.Protocol != matching.TCP || !in.ServerFirst() {
		return nil
	}
	out := []string{resources.ServerFirstWarning}
	if _, err := handshakeVerdict(rules); err != nil {
		out = append(out, "it is closed to everybody: "+err.Error())
	}
	return out
}

func stateValue(key, factory, format string) *statev3.FilterStateValue {
	return &statev3.FilterStateValue{
		Key: &statev3.FilterStateValue_ObjectKey{ObjectKey: key}, FactoryKey: factory,
		Value: &statev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: format},
			}},
		}},
	}
}

// handshakeVerdict has handshakeAllowed as its value where the rules allow. What it cannot evaluate is no verdict, and allows nobody.
func handshakeVerdict(rules matching.Rules) (string, error) {
	var denied, allowed alternatives
	for _, s := range steps(rules, matching.TCP, false) {
		list := &allowed
		if s.deny {
			list = &denied
		}
		for i := range s.entries {
			if err := list.add(&s.entries[i]); err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	out := fmt.Sprintf("%s && (%s) && !(%s) && (%s) ? '%s' : 'denied'", hasSAN, wellFormed, denied.expression(), allowed.expression(), handshakeAllowed)
	if len(out) > maxExpression {
		return "", fmt.Errorf("the identities of its permissions come to %d characters, and Envoy takes %d where it judges the handshake: allow prefixes instead of many identities",
			len(out), maxExpression)
	}
	return out, nil
}

// alternatives are entries of which one has to match. Exact identities without a condition stand in one list.
type alternatives struct {
	exact []string
	other []string
}

func (a *alternatives) add(e *entry) error {
	for _, t := range slices.Concat(e.identity, e.sni) {
		if strings.Trim(t.value, quotable) != "" {
			return fmt.Errorf("%q cannot be compared in a handshake", t.value)
		}
	}
	if len(e.sni) == 0 && len(e.identity) == 1 && e.identity[0].kind == resources.MatchExact {
		a.exact = append(a.exact, "'"+e.identity[0].value+"'")
		return nil
	}
	var parts []string
	for _, t := range e.identity {
		if t.kind == resources.MatchPrefix {
			parts = append(parts, peerSAN+".startsWith('"+t.value+"')")
		} else {
			parts = append(parts, peerSAN+" == '"+t.value+"'")
		}
	}
	for _, t := range e.sni {
		parts = append(parts, "filter_state['"+serverNameKey+"'] == b'"+t.value+"'")
	}
	if len(parts) == 0 {
		parts = []string{"true"}
	}
	if len(e.identity) > 0 {
		parts = append([]string{hasSAN}, parts...)
	}
	a.other = append(a.other, strings.Join(parts, " && "))
	return nil
}

// quotable are the characters of SPIFFE IDs and server names; none of them means anything inside of quotes.
const quotable = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/"

func (a *alternatives) expression() string {
	list := slices.Clone(a.other)
	if len(a.exact) > 0 {
		list = append(list, hasSAN+" && "+peerSAN+" in ["+strings.Join(a.exact, ",")+"]")
	}
	if len(list) == 0 {
		return "false"
	}
	return strings.Join(list, " || ")
}
