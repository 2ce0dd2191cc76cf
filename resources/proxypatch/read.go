package proxypatch

import (
	"strconv"

	"google.golang.org/protobuf/proto"
)

// Edits are the modifications of a Conf, with their values parsed into messages. They are immutable, and apply to any
// number of proxies.
type Edits struct{ changes []readChange }

// readChange is a change with its value. index is its index among the modifications.
type readChange struct {
	change
	index   int
	message proto.Message
	// forbidden is Resource.forbidden of a value that is added, computed once for all proxies; nil if nobody did.
	forbidden func() string
}

// Read checks a conf by itself, independent of proxies, and parses each of its values once. guarded also refuses values
// that only an unguarded policy may give to a proxy. It returns the Edits, or else the problems.
func (c *Conf) Read(guarded bool) (*Edits, []Problem) {
	if problem := c.tooLarge(); problem != nil {
		return nil, []Problem{*problem}
	}
	out, wrong := &Edits{changes: make([]readChange, 0, len(c.AppendModifications))}, []Problem(nil)
	for i := range c.AppendModifications {
		at := []string{"appendModifications", strconv.Itoa(i)}
		parts := c.AppendModifications[i].changes()
		if len(parts) != 1 {
			wrong = append(wrong, notOne(at, len(parts)))
			continue
		}
		check := checker{at: append(at, parts[0].kind), guarded: guarded}
		read := readChange{change: parts[0], index: i}
		check.change(&read)
		out.changes, wrong = append(out.changes, read), append(wrong, check.problems...)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}
