package rbac

import (
	"fmt"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// Keys of a connection's filter state for the decision at the handshake: `allowed` or `denied`, and its origin, which
// is a policy's KRI or one of the names of decisions that no policy made.
const (
	HandshakeVerdict = "causeway.handshake_verdict"
	HandshakePolicy  = "causeway.handshake_policy"
)

const handshakeAllowed = "allowed"

const (
	// NameHandshakeUnjudged denies where the rules are too many, or of a kind that the handshake cannot judge.
	NameHandshakeUnjudged = "handshake-unjudged"
	// NameHandshakeUnnamed stands for a policy that decided at a handshake but cannot be named, because there are too
	// many policies.
	NameHandshakeUnnamed = "handshake-unnamed"
)

// Limits of an expression. Envoy's parser accepts 32 levels. A condition has a few levels, and each condition in a
// chain adds one, so at most chained of them follow each other.
const (
	maxDepth       = 28
	conditionDepth = 5
	chained        = 3
)

// Conditions on the certificate that decide before any rule.
const (
	severalSANs = "filter_state['" + firstSANKey + "'] != filter_state['" + allSANsKey + "'] || " + peerSAN +
		".contains(',')"
	isSpiffeID = peerSAN + ".startsWith('" + anySpiffeID + "')"
)

// named pairs a name with the entries for which it decides.
type named struct {
	name    string
	entries []entry
}

// chosen is an expression for a name, with its number of levels.
type chosen struct {
	text  string
	depth int
}

// handshakeDecider returns a format string for the name of the decision's origin, in the order of steps.
func handshakeDecider(rules matching.Rules) string {
	var denies, allows []named
	for _, s := range steps(rules, matching.TCP, false) {
		if one := (named{s.name, s.entries}); s.deny {
			denies = append(denies, one)
		} else {
			allows = append(allows, one)
		}
	}
	byDefault := literal(NameDefault)
	out := byDefault
	if len(allows) > 0 {
		out = when(hasSAN+" && "+isSpiffeID, firstOf(allows, byDefault), byDefault)
	}
	if len(denies) > 0 {
		out = when(anyMatches(denies), firstOf(denies, byDefault), out)
	}
	out = when(hasSAN+" && "+isSpiffeID+" && !("+wellFormed+")", literal(NameMalformedURISAN), out)
	out = when(hasSAN+" && ("+severalSANs+")", literal(NameMultipleURISANs), out)
	if len(out.text) > maxExpression || out.depth > maxDepth {
		return NameHandshakeUnnamed
	}
	return "%CEL(" + out.text + ")%"
}

func literal(name string) chosen { return chosen{"'" + name + "'", 1} }

// when returns yes where the condition holds, and no otherwise.
func when(condition string, yes, no chosen) chosen {
	return chosen{fmt.Sprintf("(%s) ? (%s) : %s", condition, yes.text, no.text),
		1 + max(conditionDepth, 1+yes.depth, no.depth)}
}

// firstOf returns the first name that has a matching entry. Long lists become a tree.
func firstOf(list []named, otherwise chosen) chosen {
	if len(list) > chained {
		first, rest := list[:len(list)/2], list[len(list)/2:]
		return when(anyMatches(first), firstOf(first, literal(NameDefault)), firstOf(rest, otherwise))
	}
	out := otherwise
	for i := len(list) - 1; i >= 0; i-- {
		out = when(anyMatches(list[i:i+1]), literal(list[i].name), out)
	}
	return out
}

// anyMatches holds where any entry of the list matches.
func anyMatches(list []named) string {
	var all alternatives
	for _, one := range list {
		for i := range one.entries {
			_ = all.add(&one.entries[i]) // handshakeVerdict has checked that it can be written
		}
	}
	return all.expression()
}
