package rbac

import (
	"slices"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// plaintextMatcher writes steps for plaintext connections, which an inbound accepts with a MeshTLS of mode Permissive.
// Their client is unknown, so dropping TLS must gain nothing: a deny holds for any identity and server name, and an
// allow only if it is for every identity. No test looks up the certificate, because that would end the matching.
func plaintextMatcher(list []*step, by toldBy) *xdsmatcher.Matcher {
	matchers := frontmost.by(by)[len(frontmost.always):]
	for _, s := range list {
		var predicates []*predicate
		for i := range s.entries {
			e, holds := inTheClear(s.entries[i], s.deny)
			if !holds {
				continue
			}
			if e.everything() {
				return plaintextList(matchers, s.decision)
			}
			predicates = append(predicates, entryPredicate(&e))
		}
		if len(predicates) > 0 {
			matchers = append(matchers, &fieldMatcher{Predicate: anyOf(predicates), OnMatch: s.decision})
		}
	}
	return plaintextList(matchers, deniedByDefault)
}

// plaintextList is matcherList for any number of matchers: Envoy refuses an empty list.
func plaintextList(matchers []*fieldMatcher, otherwise *onMatch) *xdsmatcher.Matcher {
	if len(matchers) == 0 {
		return &xdsmatcher.Matcher{OnNoMatch: otherwise}
	}
	return matcherList(matchers, otherwise)
}

// inTheClear returns the rest of an entry for an unknown client, and whether it can match.
func inTheClear(e entry, deny bool) (entry, bool) {
	everybody := slices.Equal(e.identity, []test{{resources.MatchPrefix, anySpiffeID}})
	if !deny && (!everybody || len(e.sni) > 0) {
		return entry{}, false
	}
	e.identity, e.sni = nil, nil
	return e, true
}

// everything reports whether an entry without an identity matches every request.
func (e *entry) everything() bool {
	return len(e.path) == 0 && len(e.method) == 0 && len(e.headers) == 0 && !e.clear
}
