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

// Envoy's RBAC filter judges a TCP connection by the client's first bytes, too late for an application that speaks
// first. On such an inbound, an expression over the client's URI SANs and the server name judges the connection at the
// end of its handshake. Only a connection that the rules allow gets the application's address as its destination.

// maxExpression is the length limit of an expression. Envoy's parser accepts 100,000 characters (cel-cpp,
// ParserOptions).
const maxExpression = 90_000

// Keys of the connection's filter state. destinationKey is Envoy's, for clusters of the type ORIGINAL_DST.
const (
	allSANsKey     = "causeway.uri_sans"
	firstSANKey    = "causeway.uri_san"
	serverNameKey  = "causeway.server_name"
	destinationKey = "envoy.network.transport_socket.original_dst_address"
)

// peerSAN is the first URI SAN of the client's certificate. Without one, the whole expression has no value.
const peerSAN = "connection.uri_san_peer_certificate"

// hasSAN holds for a certificate with a URI SAN. Conditions after it may read the SAN.
const hasSAN = "filter_state['" + firstSANKey + "'] != b'-'"

// wellFormed holds for a certificate with exactly one URI SAN that is the SPIFFE ID of a workload: the negation of
// frontmost. Envoy joins several SANs by commas under one of the two keys, and has the first under the other.
const wellFormed = "filter_state['" + firstSANKey + "'] == filter_state['" + allSANsKey + "'] && " +
	peerSAN + ".matches('^spiffe://[a-z0-9._-]+(/[a-zA-Z0-9._-]+)+$') && !" + peerSAN + ".matches('/[.][.]?(/|$)')"

// HandshakeFilter returns the filter (envoy.filters.network.set_filter_state) that sets the application's address,
// IP:port, on a connection that the rules allow. Its verdicts are those of NetworkFilters. It records the decision and
// its origin under HandshakeVerdict and HandshakePolicy. The error is the reason why the rules cannot be written in
// this form; the filter then never sets an address.
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
		stateValue(destinationKey, "", "%CEL(filter_state['"+HandshakeVerdict+"'] == b'"+handshakeAllowed+"' ? '"+
			address+"' : 'denied')%"),
		stateValue(HandshakePolicy, "envoy.string", handshakeDecider(rules)),
	}}, nil
}

// DenyAllHandshake never sets an address. An inbound has it until its rules arrive.
func DenyAllHandshake() *setstatev3.Config { return closedHandshake(NameDefault) }

// closedHandshake never sets an address, and records name as the origin of the decision.
func closedHandshake(name string) *setstatev3.Config {
	return &setstatev3.Config{OnDownstreamTlsHandshake: []*statev3.FilterStateValue{
		stateValue(HandshakeVerdict, "envoy.string", "denied"), stateValue(HandshakePolicy, "envoy.string", name),
	}}
}

// HandshakeWarnings reports what the setting for applications that speak first means for an inbound, and whether its
// rules can be enforced at the handshake. It returns nothing where the setting is off.
func HandshakeWarnings(rules matching.Rules, in *matching.InboundPort) []string {
	if in.Protocol != matching.TCP || !in.ServerFirst() {
		return nil
	}
	out := []string{resources.ServerFirstWarning}
	if _, err := handshakeVerdict(rules); err != nil {
		out = append(out, "it denies everybody: "+err.Error())
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

// handshakeVerdict returns an expression whose value is handshakeAllowed where the rules allow. An expression that
// cannot be evaluated gives no verdict and allows no connection.
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
	out := fmt.Sprintf("%s && (%s) && !(%s) && (%s) ? '%s' : 'denied'", hasSAN, wellFormed, denied.expression(),
		allowed.expression(), handshakeAllowed)
	if len(out) > maxExpression {
		return "", fmt.Errorf("the identities of its permissions have %d characters, and Envoy accepts %d where it judges the handshake: allow prefixes instead of many identities",
			len(out), maxExpression)
	}
	return out, nil
}

// alternatives are entries of which one must match. Exact identities without a condition are in one list.
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

// quotable holds the characters of SPIFFE IDs and server names. None of them has a meaning inside quotes.
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
