package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// The headers of conditional requests.
const (
	tagHeader     = "ETag"
	ifMatch       = "If-Match"
	ifNoneMatch   = "If-None-Match"
	anyTag        = "*"
	titleModified = "Precondition failed"
)

// tagOf returns the entity tag of a resource. It covers what users write and the creation time, but not the status,
// which changes by itself: a conditional write fails only if somebody else has written.
func tagOf(r *resources.Resource) string {
	written := *r
	written.Status, written.ModificationTime = nil, time.Time{}
	sum := sha256.Sum256(resources.AppendUniversal(nil, &written))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// precondition is the state in which a write expects its resource. The zero value expects none.
type precondition struct {
	// match is a tag, or "*" for any resource. Empty means no expectation.
	match string
	// absent expects that the resource does not exist.
	absent bool
}

// preconditionOf reads If-Match and If-None-Match of a write.
func preconditionOf(r *http.Request) (precondition, error) {
	var want precondition
	if values := r.Header.Values(ifMatch); len(values) > 0 {
		want.match = strings.TrimSpace(values[0])
		if len(values) > 1 || want.match != anyTag && !isTag(want.match) {
			return want, BadField(ifMatch, `want one ETag, such as "5e1f" with its quotes, or *`)
		}
	}
	if values := r.Header.Values(ifNoneMatch); len(values) > 0 {
		if want.absent = true; len(values) > 1 || strings.TrimSpace(values[0]) != anyTag {
			return want, BadField(ifNoneMatch, "want *, for a resource that must not exist yet")
		}
	}
	if want.absent && want.match != "" {
		return want, BadField(ifMatch, "give either If-Match or If-None-Match")
	}
	return want, nil
}

// isTag reports whether text is one strong entity tag.
func isTag(text string) bool {
	inner, begins := strings.CutPrefix(text, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	return begins && ends && inner != "" && !strings.ContainsAny(inner, `",`)
}

// check compares the precondition with the stored resource of a key, or nil if there is none.
func (p precondition) check(key resources.Key, old *resources.Resource) error {
	var reason string
	switch {
	case p.absent && old != nil:
		reason = "it exists"
	case p.match != "" && old == nil:
		reason = "it does not exist"
	case p.match != "" && p.match != anyTag && p.match != tagOf(old):
		reason = "somebody has changed it since: read it again"
	default:
		return nil
	}
	return NewError(http.StatusPreconditionFailed, titleModified, key.String()+": "+reason).with(OutcomeNothing)
}

// onlyIf adds the precondition of one resource to the check of a batch.
func (p precondition) onlyIf(key resources.Key, check func(store.Snapshot) error) func(store.Snapshot) error {
	return func(state store.Snapshot) error {
		if err := check(state); err != nil { // a caller that may not write it learns nothing about it
			return err
		}
		return p.check(key, state.Get(key))
	}
}

// checkUnconditional refuses a condition that the route would ignore.
func checkUnconditional(r *http.Request, row *Row) error {
	if row.Conditional || !changes(r.Method) {
		return nil
	}
	for _, name := range []string{ifMatch, ifNoneMatch, "If-Unmodified-Since"} {
		if r.Header.Get(name) != "" {
			return BadField(name, "this request is not conditional: PUT and DELETE of one resource are")
		}
	}
	return nil
}
