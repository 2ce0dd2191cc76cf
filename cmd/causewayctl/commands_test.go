package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandsExplainThemselves also links the whole program into the test binary. The go command caches the results of
// tests whose binary has not changed, and the scripts only start the program.
func TestCommandsExplainThemselves(t *testing.T) {
	t.Parallel()
	c := &cli{in: strings.NewReader(""), out: io.Discard, errOut: io.Discard}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q, want a line without a full stop", cmd.CommandPath(), cmd.Short)
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its example does not show it", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(c))

	if got := run([]string{"get"}, strings.NewReader(""), io.Discard, io.Discard); got != exitUsage {
		t.Errorf("get without a type exits with %d, want %d", got, exitUsage)
	}
}
