package proxypatch

import (
	"fmt"
	"sync"

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
	// forbidden is Resource.forbidden of a value that is added, computed once for all proxies.
	forbidden func() string
}

// Read parses a conf. The error is a *Problem: the first that Problems returns, or that of a value.
func (c *Conf) Read(guarded bool) (*Edits, error) {
	if wrong := c.Problems(guarded); len(wrong) > 0 {
		return nil, &wrong[0]
	}
	out := &Edits{}
	for i := range c.AppendModifications {
		for _, one := range c.AppendModifications[i].changes() {
			read := readChange{change: one, index: i}
			if one.Value != nil {
				var err error
				if read.message, err = parse(one.kind, *one.Value); err != nil {
					return nil, &Problem{Path: []string{"appendModifications", fmt.Sprint(i), one.kind, "value"}, Text: err.Error()}
				}
				read.forbidden = sync.OnceValue(func() string { return forbidden(read.message) })
			}
			out.changes = append(out.changes, read)
		}
	}
	return out, nil
}
