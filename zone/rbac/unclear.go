package rbac

import (
	"regexp"

	"github.com/causeway-mesh/causeway/resources"
)

// climbing is for paths of which an application may go up a folder, or see another path altogether, where Envoy does not: by a
// dot segment that it reads only decoded, by an escape in an escape, by one that is broken, or by a character that becomes a dot, a
// slash or a percent sign. No allow of some paths allows one of those, since nobody can say where it leads.
const climbing = `[^?]*(?:` + dotSegment + `|%(?:` + misread + `))`

var climbingTest = test{resources.MatchRegularExpression, `(?i)` + climbing}

// unclear is climbing, and what may become another path without going up: every deny with a path denies it.
const unclear = `[^?]*(?:` + dotSegment + `|%(?:` + misread + `|` + dropped + `)|` + shortName + `|` + fileStream + `)|` + brokenUTF8

const (
	segmentEnds = `(?:(?:[/?;#]|%3[bf]|%23).*)?`
	// dotSegment has dots and blanks, or two dots among escapes that may be dropped.
	dotSegment = `/(?:(?:%20|%c2%a0)*\.(?:\.|%20|%c2%a0)*|(?:%[0-9a-f]{2})*\.(?:%[0-9a-f]{2})*\.(?:%[0-9a-f]{2})*)` + segmentEnds

	// misread stands behind a percent sign.
	misread = `25[0-9a-f%u].*` + // an escape in an escape
		`|[^0-9a-f].*|[0-9a-f](?:[^0-9a-f].*)?|` + // no escape, `%u002f`
		`|2[ef].*|5c.*|00.*` + // dots, slashes, NUL
		`|c[01].*|e0%[89].*|f0%8.*|f[5-9a-f].*` + // UTF-8 that is too long, or none
		`|ef%bc%8[5ef].*|ef%bc%bc.*|ef%b9%(?:92|a8|aa).*|e2%80%a[45].*|e2%81%84.*|e2%88%95.*` // wide and small %, ., / and \

	// dropped stands behind a percent sign: control characters, what nobody sees, letters of mathematics.
	dropped = `[01][0-9a-f].*|7f.*|c2%ad.*|e2%80%8[bef].*|e2%81%a0.*|ef%bb%bf.*|f0%9d%9[0-9a-f].*`

	// shortName is `ADMINI~1`, which Windows keeps beside a name that is longer.
	shortName = `/[^/?;~]{1,6}~[0-9]{1,6}(?:\.[^/?]{0,3})?` + segmentEnds
	// fileStream is `admin::$DATA`.
	fileStream = `(?::|%3a|%ef%bc%9a)(?:\$|%24|%ef%bc%84).*`
	// brokenUTF8 is, behind whole characters, one that did not begin or does not go on; misread has those of wrong bytes.
	brokenUTF8 = `(?:[^%?]|%[0-7][0-9a-f]|%[cd][0-9a-f]` + more + `|%e[0-9a-f]` + more + `{2}|%f[0-9a-f]` + more + `{3})*` +
		`(?:%[89ab].*|(?:%[cd][0-9a-f]|%e[0-9a-f]` + more + `?|%f[0-9a-f]` + more + `{0,2})(?:[^%].*|%[^89ab].*)?)`
	more = `(?:%[89ab][0-9a-f])`
)

// Compiled for the reference. Filters have the expressions, as Envoy's RE2 reads them.
var (
	climbingPath = regexp.MustCompile(`\A(?i:` + climbing + `)\z`)
	unclearPath  = regexp.MustCompile(`\A(?i:` + unclear + `)\z`)
)
