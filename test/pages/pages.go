// Package pages reads the commands of documents, so that tests run what a reader would. It also lists the runners of
// the install pages.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Command is a command that a page tells its reader to run.
type Command struct {
	// Line is its line in the page, from 1.
	Line int
	// Text is the command. Lines that end in a backslash are joined.
	Text string
	// Output is the output that the page shows below the command, line by line.
	Output []string
}

// silent are the kinds of fenced blocks without commands.
var silent = map[string]bool{"mermaid": true, "yaml": true, "json": true, "text": true, "go": true}

// Read returns the commands of a page below the folder root, or of one section, such as "## Check"; of the whole page
// if section is empty. Commands follow "$ " in blocks of the kind console. A block with commands in any other form,
// indented or fenced without a kind, is an error, because no test would run them.
func Read(root, page, section string) ([]Command, error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	commands, err := parse(string(raw), section)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	return commands, nil
}

func parse(text, section string) ([]Command, error) {
	r := reader{within: section == ""}
	for i, line := range strings.Split(text, "\n") {
		if err := r.line(i+1, line, section); err != nil {
			return nil, err
		}
	}
	if r.kind != "" {
		return nil, fmt.Errorf("a block of the kind %s does not end", r.kind)
	}
	if section != "" && !r.found {
		return nil, fmt.Errorf("there is no section %q", section)
	}
	return r.all, nil
}

// reader parses a page line by line.
type reader struct {
	all           []Command
	kind          string // of the current fenced block; empty outside
	within, found bool   // the section
	blank         bool   // the previous line was blank
}

func (r *reader) line(n int, line, section string) error {
	fence, isFence := strings.CutPrefix(line, "```")
	defer func() { r.blank = line == "" }()
	switch {
	case isFence && r.kind != "":
		r.kind = ""
	case isFence && !r.within:
		r.kind = "passed over"
	case isFence && (fence == "console" || silent[fence]):
		r.kind = fence
	case isFence:
		return fmt.Errorf("line %d: a block of the kind %q: commands stand behind $ in blocks of the kind console", n, fence)
	case r.kind == "console":
		return r.shown(n, line)
	case r.kind != "":
	case section != "" && strings.HasPrefix(line, "#"):
		r.heading(line, section)
	case r.within && r.blank && strings.HasPrefix(line, "    "):
		return fmt.Errorf("line %d: an indented block: commands stand behind $ in blocks of the kind console", n)
	}
	return nil
}

// heading starts the section, or ends it if the heading is of the same or a higher level.
func (r *reader) heading(line, section string) {
	level := func(s string) int { return len(s) - len(strings.TrimLeft(s, "#")) }
	if line == section {
		r.within, r.found = true, true
	} else if level(line) <= level(section) {
		r.within = false
	}
}

// shown reads a line of a console block.
func (r *reader) shown(n int, line string) error {
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		r.all = append(r.all, Command{Line: n, Text: command})
		return nil
	}
	if len(r.all) == 0 {
		return fmt.Errorf("line %d: output without a command: commands stand behind $", n)
	}
	last := &r.all[len(r.all)-1]
	if begun, ok := strings.CutSuffix(last.Text, `\`); ok && len(last.Output) == 0 {
		last.Text = begun + strings.TrimSpace(line)
		return nil
	}
	last.Output = append(last.Output, line)
	return nil
}
