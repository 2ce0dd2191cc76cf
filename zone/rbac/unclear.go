package rbac

import (
	"regexp"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
)

// climbing matches paths in which an application, but not Envoy, may go up a folder or see another path altogether:
// because of a dot segment that shows only once decoded, an escape within an escape, a broken escape, or a character
// that becomes a dot, a slash or a percent sign. In an allow entry, expressions and prefixes other than `/` never match
// them, because where they lead is unknown.
const climbing = `[^?]*(?:` + dotSegment + `|%(?:` + misread + `))`

var climbingTest = test{resources.MatchRegularExpression, `(?i)` + climbing}

// unclear matches climbing paths and those that may become another path without going up. Every deny with a path denies
// them.
const unclear = `[^?]*(?:` + dotSegment + `|%(?:` + misread + `|` + dropped + `)|` + shortName + `|` + fileStream +
	`)|` + brokenUTF8

const (
	segmentEnds = `(?:(?:[/?;#]|%3[bf]|%23).*)?`
	// dotSegment matches a segment of dots and blanks, or of two dots among escapes that an application may drop.
	dotSegment = `/(?:(?:%20|%c2%a0)*\.(?:\.|%20|%c2%a0)*|(?:%[0-9a-f]{2})*\.(?:%[0-9a-f]{2})*\.(?:%[0-9a-f]{2})*)` +
		segmentEnds

	// misread follows a percent sign.
	misread = `25[0-9a-f%u].*` + // an escape within an escape
		`|[^0-9a-f].*|[0-9a-f](?:[^0-9a-f].*)?|` + // not an escape, `%u002f`
		`|2[ef].*|5c.*|00.*` + // dots, slashes, NUL
		`|c[01].*|e0%[89].*|f0%8.*|f[5-9a-f].*` + // overlong or invalid UTF-8
		`|ef%bc%8[5ef].*|ef%bc%bc.*|ef%b9%(?:92|a8|aa).*|e2%80%a[45].*|e2%81%84.*|e2%88%95.*` // wide and small %, ., / and \

	// dropped follows a percent sign: control characters, invisible characters, mathematical letters.
	dropped = `[01][0-9a-f].*|7f.*|c2%ad.*|e2%80%8[bef].*|e2%81%a0.*|ef%bb%bf.*|f0%9d%9[0-9a-f].*`

	// shortName matches `ADMINI~1`, the name that Windows keeps beside a longer one.
	shortName = `/[^/?;~]{1,6}~[0-9]{1,6}(?:\.[^/?]{0,3})?` + segmentEnds
	// fileStream matches `admin::$DATA`.
	fileStream = `(?::|%3a|%ef%bc%9a)(?:\$|%24|%ef%bc%84).*`
	// brokenUTF8 matches, after whole characters, one without its first byte or its continuation. misread has those
	// with invalid bytes.
	brokenUTF8 = `(?:[^%?]|%[0-7][0-9a-f]|%[cd][0-9a-f]` + more + `|%e[0-9a-f]` + more + `{2}|%f[0-9a-f]` +
		more + `{3})*` +
		`(?:%[89ab].*|(?:%[cd][0-9a-f]|%e[0-9a-f]` + more + `?|%f[0-9a-f]` + more + `{0,2})(?:[^%].*|%[^89ab].*)?)`
	more = `(?:%[89ab][0-9a-f])`
)

// Compiled for the reference, when it first needs them. The filters have the expressions themselves, which Envoy
// compiles with RE2.
var (
	climbingPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?i:` + climbing + `)\z`) })
	unclearPath  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?i:` + unclear + `)\z`) })
)
