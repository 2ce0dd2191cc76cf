package settings

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearestFlag returns, for the error of an unknown flag, the flags of a command that begin like it or contain it.
func nearestFlag(cmd *cobra.Command, err error) string {
	_, typed, unknown := strings.Cut(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	best, near := 0, []string(nil)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch n := shared(f.Name, typed); {
		case n < 3 || n < len(typed)/2:
		case n > best:
			best, near = n, []string{"--" + f.Name}
		case n == best:
			near = append(near, "--"+f.Name)
		}
	})
	if len(near) == 0 || len(near) > 4 {
		return ""
	}
	return ": did you mean " + strings.Join(near, " or ") + "?"
}

// shared returns how many bytes two names begin with together.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
