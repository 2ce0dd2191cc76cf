package rbac

import (
	"slices"
	"strings"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// wideFrom is the number of keys that an entry with conditions besides its identity prefix may be copied to. An
	// entry that covers more keys stays in a list of its own.
	wideFrom = 16
	// maxSegments bounds the nesting. Each segment takes up to two levels; in tests, Envoy accepted 32 levels and
	// refused 64. The last segment is a list of all remaining items.
	maxSegments = 10
)

// item is one entry with its position. rank counts steps. Items of one rank have the same action, so their order among
// themselves does not matter.
type item struct {
	rank  int
	step  *step
	entry *entry
}

// segment is a run of items that is evaluated before the next one: as maps from identities to answers, or as a list.
type segment struct {
	tree  bool
	items []item
}

// compiledMatcher gives the same answers as listMatcher, but looks identities up instead of testing them one by one.
// Segments follow each other in the order of the list. A segment without an answer for a request passes it to the next.
func compiledMatcher(list []*step, by toldBy) *xdsmatcher.Matcher {
	segments, last := segmentsOf(list)
	for _, s := range slices.Backward(segments) {
		if s.tree {
			last = writeTree(s.items, last)
		} else {
			last = ask(matcherList(writeList(s.items), last))
		}
	}
	return matcherList(frontmost.by(by), last)
}

// segmentsOf cuts the steps into segments. It also returns the action for requests that no segment answers. A step's
// narrow and wide items may come in either order, so each step begins with those that need no new segment.
func segmentsOf(list []*step) ([]segment, *onMatch) {
	c := newCutter(list)
	var narrow, wide []item
	for rank := range list {
		s := list[rank]
		narrow, wide = narrow[:0], wide[:0]
		for i := range s.entries {
			e := &s.entries[i]
			switch {
			case e.isEverybody():
				return c.segments, s.decision
			case c.isWide(e):
				wide = append(wide, item{rank, s, e})
			default:
				narrow = append(narrow, item{rank, s, e})
			}
		}
		if c.inTree() {
			c.add(true, narrow)
			c.add(false, wide)
		} else {
			c.add(false, wide)
			c.add(true, narrow)
		}
	}
	return c.segments, deniedByDefault
}

// cutter collects the segments of a list.
type cutter struct {
	list     []*step
	segments []segment
	// room is the buffer for the next items. It holds the items of all steps, and each segment uses a part of it.
	room []item
	// keys are all identities and prefixes that the steps name, sorted. It is nil until isWide needs them.
	keys []string
}

func newCutter(list []*step) *cutter {
	n := 0
	for i := range list {
		n += len(list[i].entries)
	}
	return &cutter{list: list, room: make([]item, 0, n)}
}

func (c *cutter) inTree() bool { return len(c.segments) == 0 || c.segments[len(c.segments)-1].tree }

func (c *cutter) add(tree bool, items []item) {
	if len(items) == 0 {
		return
	}
	n := len(c.segments)
	if n < maxSegments && (n == 0 || c.segments[n-1].tree != tree) {
		// The last segment takes all remaining items, which only a list can hold.
		c.segments = append(c.segments, segment{tree: tree && n < maxSegments-1})
		c.room = c.room[len(c.room):] // after the previous segment
		n++
	}
	c.room = append(c.room, items...)
	c.segments[n-1].items = c.room
}

// isWide reports whether the entry would have to be copied to too many keys of a map, or has no key.
func (c *cutter) isWide(e *entry) bool {
	switch {
	case len(e.identity) == 0:
		return true
	case e.identity[0].kind != resources.MatchPrefix || !e.hasConditions():
		return false
	}
	if c.keys == nil {
		c.keys = identityKeys(c.list)
	}
	prefix := e.identity[0].value
	from, _ := slices.BinarySearch(c.keys, prefix)
	to := min(from+wideFrom, len(c.keys)-1)
	return to-from == wideFrom && strings.HasPrefix(c.keys[to], prefix)
}

func identityKeys(list []*step) []string {
	var keys []string
	for i := range list {
		for j := range list[i].entries {
			for _, t := range list[i].entries[j].identity {
				keys = append(keys, t.value)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// writeList writes items as matchers, one for each rank.
func writeList(items []item) []*fieldMatcher {
	var out []*fieldMatcher
	for group := range ranks(items) {
		predicates := make([]*predicate, len(group))
		for i := range group {
			predicates[i] = entryPredicate(group[i].entry)
		}
		out = append(out, &fieldMatcher{Predicate: anyOf(predicates), OnMatch: group[0].step.decision})
	}
	return out
}

// ranks yields the runs of items that have the same rank. Items are sorted by rank.
func ranks(items []item) func(yield func([]item) bool) {
	return func(yield func([]item) bool) {
		for len(items) > 0 {
			n := 1
			for n < len(items) && items[n].rank == items[0].rank {
				n++
			}
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

func (e *entry) hasConditions() bool { return len(e.sni)+len(e.path)+len(e.method)+len(e.headers) > 0 }

func (e *entry) isEverybody() bool { return len(e.identity) == 0 && !e.hasConditions() }
