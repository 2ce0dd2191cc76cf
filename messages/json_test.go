package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/messages"
)

// TestJSONIsCountedBeforeItIsDecoded checks that each row passes with its number of values and its depth as limits, and
// not with one less of either.
func TestJSONIsCountedBeforeItIsDecoded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text          string
		values, depth int
	}{
		{`{"a":1}`, 2, 1},
		{`[1,2,3]`, 4, 1},
		{`{"a":[{"b":1},{"b":2,"c":null}],"d":"x"}`, 8, 3},
		{`{"a":",,,[[[{{{","b":"\",\\"}`, 3, 1},
		{"[" + strings.Repeat("{},", 999) + "{}]", 2001, 2}, // an empty object counts for its possible content
		{strings.Repeat("[", 50) + strings.Repeat("]", 50), 51, 50},
	} {
		if err := messages.CheckJSON([]byte(row.text), row.values, row.depth); err != nil {
			t.Errorf("%.40s: %v", row.text, err)
		}
		if err := messages.CheckJSON([]byte(row.text), row.values-1, row.depth); !errors.Is(err, messages.ErrDense) {
			t.Errorf("%.40s has more than %d values: %v", row.text, row.values-1, err)
		}
		if err := messages.CheckJSON([]byte(row.text), row.values, row.depth-1); !errors.Is(err, messages.ErrDense) {
			t.Errorf("%.40s nests deeper than %d: %v", row.text, row.depth-1, err)
		}
	}
	for _, broken := range []string{`"`, `"\`, `]]]`, `{"a`, ``} {
		if err := messages.CheckJSON([]byte(broken), 10, 10); err != nil {
			t.Errorf("%q: %v", broken, err)
		}
	}
}
