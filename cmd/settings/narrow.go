package settings

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// HelpWidth is the maximum number of columns of a line of help.
const HelpWidth = 100

// flagSlop is the number of columns by which pflag exceeds the width it is given.
const flagSlop = 5

// entry matches the start of a line that explains a term: indent, term, at least two spaces.
var entry = regexp.MustCompile(`^ +\S+ {2,}`)

// Narrow wraps the help of a command and of its subcommands at HelpWidth: descriptions, flags and examples.
func Narrow(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages",
		fmt.Sprintf("Flags.FlagUsagesWrapped %d", HelpWidth-flagSlop)))
	narrow(root)
}

func narrow(cmd *cobra.Command) {
	cmd.Long, cmd.Example = narrowText(cmd.Long), narrowExamples(cmd.Example)
	for _, sub := range cmd.Commands() {
		narrow(sub)
	}
}

// narrowText fills each paragraph that has a line wider than HelpWidth. An indented line stays a line of its own.
func narrowText(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		lines := strings.Split(paragraph, "\n")
		if !wide(lines) {
			continue
		}
		var out, words []string
		flush := func() {
			if len(words) > 0 {
				out, words = append(out, fill("", "", words)...), nil
			}
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, " ") {
				words = append(words, strings.Fields(line)...)
				continue
			}
			flush()
			first := entry.FindString(line)
			out = append(out, fill(first, strings.Repeat(" ", len(first)), strings.Fields(line[len(first):]))...)
		}
		flush()
		paragraphs[i] = strings.Join(out, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

func wide(lines []string) bool {
	for _, line := range lines {
		if len(line) > HelpWidth {
			return true
		}
	}
	return false
}

// fill returns lines of words, the first behind first and the others behind next.
func fill(first, next string, words []string) []string {
	var out []string
	line := first
	for i, word := range words {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > HelpWidth:
			out, line = append(out, line), next+word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}

// narrowExamples breaks each example that is wider than HelpWidth before a flag, as a shell reads it.
func narrowExamples(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		broken := ""
		for len(line) > HelpWidth {
			at := strings.LastIndex(line[:HelpWidth-1], " --")
			if at <= len("      ") {
				break
			}
			broken += line[:at] + " \\\n"
			line = "      " + line[at+1:]
		}
		lines[i] = broken + line
	}
	return strings.Join(lines, "\n")
}
