package settings

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestUnknownFlags: whoever misspells a flag of a server is told the nearest, and where all of them are.
func TestUnknownFlags(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"--api-oidc-ca-file=x": "unknown flag: --api-oidc-ca-file: did you mean --api-oidc-ca?\nRun 'server run --help' for usage.\n",
		"--data-dri=x":         "unknown flag: --data-dri: did you mean --data-dir?\nRun 'server run --help' for usage.\n",
		"--nothing=x":          "unknown flag: --nothing\nRun 'server run --help' for usage.\n",
	} {
		run := &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return nil }}
		for _, name := range []string{"api-oidc-ca", "api-oidc-issuer", "api-address", "data-dir"} {
			run.Flags().String(name, "", "")
		}
		root := &cobra.Command{Use: "server"}
		root.AddCommand(run)
		root.SetArgs([]string{"run", typed})
		var said bytes.Buffer
		if status := Execute(root, &said); status != exitUsage || !strings.HasSuffix(said.String(), want) {
			t.Errorf("%s: status %d, %q, want %q", typed, status, said.String(), want)
		}
	}
}
