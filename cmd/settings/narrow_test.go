package settings

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestNarrow checks that help has no line wider than HelpWidth, keeps all words, and that examples stay commands.
func TestNarrow(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("word ", 30)
	root := &cobra.Command{Use: "root", Short: "a root", Long: word + "\n\n  term      " + word + "\n  other     short\n\nlast",
		Example: "  root --first " + strings.Repeat("a", 40) + " --second " + strings.Repeat("b", 40) + " --third c\n  root", Run: func(*cobra.Command, []string) {}}
	sub := &cobra.Command{Use: "sub", Long: word, Run: func(*cobra.Command, []string) {}}
	sub.Flags().String("flag", "", "a `value` of "+word)
	root.AddCommand(sub)
	Narrow(root)
	for _, cmd := range []*cobra.Command{root, sub} {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimRight(line, "\n")) > HelpWidth {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
		if n := strings.Count(out.String(), "word"); n%30 != 0 || n == 0 {
			t.Errorf("%s: %d words, want all:\n%s", cmd.Name(), n, &out)
		}
	}
	if want := " \\\n      --second " + strings.Repeat("b", 40) + " --third c\n  root"; !strings.HasSuffix(root.Example, want) {
		t.Errorf("the example is %q, want it to end in %q", root.Example, want)
	}
	if want := "\n            word"; !strings.Contains(root.Long, want) || !strings.Contains(root.Long, "\n  other     short\n\nlast") {
		t.Errorf("the description is\n%s", root.Long)
	}
	before := root.Long
	Narrow(root)
	if root.Long != before {
		t.Error("wrapping twice changes the text")
	}
}
