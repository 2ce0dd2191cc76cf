package settings

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// NewMan returns a program's command, hidden in help, that writes its manual pages for packages. Their date is
// SOURCE_DATE_EPOCH, or today.
func NewMan(program string) *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages",
		Example: "  " + program + " man share/man/man1",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manual pages are for everybody
				return fmt.Errorf("folder of the manual pages: %w", err)
			}
			root := cmd.Root()
			disableTag(root)
			header := &doc.GenManHeader{Title: strings.ToUpper(root.Name()), Section: "1", Source: "Causeway",
				Manual: "Causeway"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}

// disableTag removes the line that names a page's generator.
func disableTag(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, sub := range cmd.Commands() {
		disableTag(sub)
	}
}
