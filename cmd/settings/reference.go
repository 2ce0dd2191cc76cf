package settings

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NewReference returns a program's command, hidden in help, that writes all its commands and flags as Markdown for the
// reference in the documentation.
func NewReference(program string) *cobra.Command {
	return &cobra.Command{
		Use:     "reference",
		Short:   "Write the reference of all commands and flags as Markdown",
		Example: "  " + program + " reference",
		Hidden:  true,
		Args:    cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			root := cmd.Root()
			root.InitDefaultHelpCmd()
			root.InitDefaultCompletionCmd()
			describe(cmd.OutOrStdout(), root)
		},
	}
}

// describe writes a command and its subcommands.
func describe(w io.Writer, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Runnable() {
		fmt.Fprintf(w, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Long != "" && cmd.Name() != completion {
		fmt.Fprintf(w, "\n```text\n%s\n```\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\n```sh\n%s\n```\n", withoutIndent(cmd.Example))
	}
	describeFlags(w, cmd)
	if cmd.Name() == completion {
		return // cobra's text about each shell stays in --help
	}
	for _, sub := range cmd.Commands() {
		describe(w, sub)
	}
}

// completion is the name of the command that cobra adds.
const completion = "completion"

// describeFlags writes a table of a command's own flags. If the command reads a settings file, the table includes the
// key and the variable of each flag.
func describeFlags(w io.Writer, cmd *cobra.Command) {
	flags := cmd.NonInheritedFlags()
	configurable := readsSettings(flags)
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		rows = append(rows, flagRow(f, configurable))
	})
	if len(rows) == 0 {
		return
	}
	header := "| flag | default | |\n| --- | --- | --- |"
	if configurable {
		header = "| flag | key in the file | environment | default | |\n| --- | --- | --- | --- | --- |"
	}
	fmt.Fprintf(w, "\n%s\n%s\n", header, strings.Join(rows, "\n"))
}

func flagRow(f *pflag.Flag, configurable bool) string {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	cells := []string{"`" + strings.TrimSpace(name+" "+value) + "`"}
	if configurable && f.Name != configFlag {
		cells = append(cells, "`"+f.Name+"`", "`"+envPrefix+"_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))+"`")
	} else if configurable {
		cells = append(cells, "", "`"+envPrefix+"_"+strings.ToUpper(f.Name)+"`")
	}
	unset := ""
	if f.DefValue != "" && f.DefValue != "[]" {
		unset = "`" + f.DefValue + "`"
	}
	cells = append(cells, unset, strings.ReplaceAll(strings.ReplaceAll(usage, "|", `\|`), "\n", " "))
	return "| " + strings.Join(cells, " | ") + " |"
}

// withoutIndent removes the two spaces at the start of each line of an example.
func withoutIndent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimRight(text, "\n"), "  "), "\n  ", "\n")
}
