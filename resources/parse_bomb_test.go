package resources

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// bombTime is how long a bomb may take under the race detector on a busy machine. One whose cost grows with the square of
// its length would take hours.
const bombTime = 90 * time.Second

// TestBombsAreRefused feeds the reader texts of a few megabytes that are cheap to write and expensive to read. Each is
// refused, or read, at a cost linear in its length.
func TestBombsAreRefused(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	nested := many(2000, "a%d: 0, ")
	for name, c := range map[string]struct{ text, says string }{
		"declared tags":    {many(100_000, "%%TAG !a%d! b\n") + "---\n{}", "%TAG appears more than 100 times"},
		"a list of merges": {"<<: [" + many(60_000, "{a%d: 0},") + "]", ""},
		"merge keys":       {"{" + many(60_000, "<<: {a%d: 0},") + "}", ""},
		"more merges":      {"<<: [" + many(100_001, "{a%d: 0},") + "]", "merge keys add more than 100000 values"},
		"merges within merges": {strings.Repeat("{<<: ", 60) + "{" + nested + "}" + strings.Repeat("}", 60),
			"merge keys add more than 100000 values"},
		"aliases of aliases":        {"a: &a [0,0,0,0,0,0,0,0,0,0]\n" + aliases(12), "aliases add more than 100000 values"},
		"an alias of itself":        {"a: &a [*a]", "nested deeper than 64 levels"},
		"lists in lists":            {strings.Repeat("[", 4_000_000), "exceeded max depth"},
		"JSON lists in lists":       {"{\"a\":" + strings.Repeat("[", 4_000_000), "nested deeper than 64 levels"},
		"keys":                      {many(250_001, "a%d: 0\n"), ""},
		"values":                    {strings.Repeat("-\n", 500_001), "more than 500000 values"},
		"one key among many more":   {many(100_000, "a%d: 0\n") + "a5: 0", "the key \"a5\" appears twice"},
		"a JSON key among more":     {"{" + many(100_000, "\"a%d\":0,") + "\"a5\":0}", "the key \"a5\" appears twice"},
		"a long number":             {"a: " + strings.Repeat("9", 4_000_000), ""},
		"a long hexadecimal number": {"a: 0x" + strings.Repeat("f", 4_000_000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() {
				read := parseYAML
				if strings.HasPrefix(c.text, "{\"") {
					read = parseJSON
				}
				_, err := read([]byte(c.text))
				ended <- err
			}()
			select {
			case err := <-ended:
				if got := fmt.Sprint(err); c.says == "" && err != nil || !strings.Contains(got, c.says) || len(got) > 1000 {
					t.Errorf("%.200s, want %q", got, c.says)
				}
			case <-time.After(bombTime):
				t.Errorf("not read within %s: what it costs grows faster than its length", bombTime)
			}
		})
	}
}

// aliases returns lists, each of which has the previous one ten times.
func aliases(n int) string {
	var text strings.Builder
	before := "a"
	for i := range n {
		name := string(rune('b' + i))
		fmt.Fprintf(&text, "%s: &%s [%s]\n", name, name, strings.TrimSuffix(strings.Repeat("*"+before+",", 10), ","))
		before = name
	}
	return text.String()
}
