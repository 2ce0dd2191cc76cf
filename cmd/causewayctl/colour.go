package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// colourMode is the value of --color.
type colourMode string

const (
	colourAuto   colourMode = "auto"
	colourAlways colourMode = "always"
	colourNever  colourMode = "never"
)

// String implements pflag.Value. The zero mode is auto.
func (m *colourMode) String() string {
	if *m == "" {
		return string(colourAuto)
	}
	return string(*m)
}

// Set implements pflag.Value.
func (m *colourMode) Set(s string) error {
	if !slices.Contains([]colourMode{colourAuto, colourAlways, colourNever}, colourMode(s)) {
		return errors.New("must be auto, always or never")
	}
	*m = colourMode(s)
	return nil
}

// Type implements pflag.Value.
func (m *colourMode) Type() string { return "when" }

// on reports whether output for people has colours. In auto mode, a terminal gets them, unless NO_COLOR is set or it is
// a dumb one; on Windows, only one that identifies itself.
func (m *colourMode) on(terminal bool, env func(string) string, system string) bool {
	switch *m {
	case colourAlways:
		return true
	case colourNever:
		return false
	}
	if !terminal || env("NO_COLOR") != "" || env("TERM") == "dumb" {
		return false
	}
	return system != "windows" || env("WT_SESSION") != "" || env("TERM") != ""
}

// paint decides whether the command's output has colours.
func (c *cli) paint() {
	if c.painter == nil || c.output != "" && c.output != formatTable && c.output != formatWide {
		return
	}
	c.painter.on = c.colour.on(isTerminal(c.raw), os.Getenv, runtime.GOOS)
}

// isTerminal reports whether a writer is a terminal, or another character device.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Terminal colours. The terminal chooses their shades.
const (
	red      = "\x1b[31m"
	green    = "\x1b[32m"
	yellow   = "\x1b[33m"
	noColour = "\x1b[0m"
)

// shades maps the first words of states and verdicts to colours.
var shades = map[string]string{
	"online": green, "ok": green, "allowed": green, "allow": green, "active": green,
	"offline": red, "problem": red, "denied": red, "deny": red, "error": red, "errors": red,
	"unknown": yellow, "warning": yellow, "behind": yellow, "depends": yellow, "disabled": yellow,
}

// stateColumns are the headers of the columns that hold states and verdicts.
var stateColumns = []string{"STATUS", "STATE", "VERDICT", "PROXY"}

// painter colours the states and verdicts in text for people, line by line: the cells of such columns in a table, and
// lines that begin with a verdict or a severity. Its input is already escaped, so that all colours are its own. It
// holds back an unfinished line.
type painter struct {
	to io.Writer
	on bool

	line []byte
	// column is where the states of the current table begin, in characters, or -1 outside of a table.
	column int
}

func newPainter(to io.Writer) *painter { return &painter{to: to, column: -1} }

// Write implements io.Writer.
func (p *painter) Write(text []byte) (int, error) {
	if !p.on {
		return p.to.Write(text)
	}
	var out bytes.Buffer
	for rest := text; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		p.line = append(p.line, part...)
		if !whole {
			break
		}
		out.WriteString(p.painted(string(p.line)))
		out.WriteByte('\n')
		p.line, rest = p.line[:0], after
	}
	if _, err := p.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Close writes an unfinished line. It does not close the underlying writer.
func (p *painter) Close() error {
	_, err := p.to.Write(p.line)
	p.line = nil
	return err
}

// painted returns a line with colours.
func (p *painter) painted(line string) string {
	if column, header := stateColumn(line); header {
		p.column = column
		return line
	}
	if strings.TrimSpace(line) == "" {
		p.column = -1
	}
	if p.column >= 0 {
		runes := []rune(line)
		if p.column >= len(runes) || p.column > 0 && runes[p.column-1] != ' ' {
			return line
		}
		cell, _, _ := strings.Cut(string(runes[p.column:]), "   ")
		return string(runes[:p.column]) + shaded(cell, cell) + string(runes[p.column+len([]rune(cell)):])
	}
	for _, ending := range []string{" by ", ": "} {
		if word, after, found := strings.Cut(line, ending); found && !strings.Contains(word, " ") {
			return shaded(word, word) + ending + after
		}
	}
	if strings.Contains(line, " ") {
		return line
	}
	return shaded(line, line)
}

// shaded returns text in the colour of the state's first word, or unchanged if that is not a state.
func shaded(state, text string) string {
	word, _, _ := strings.Cut(state, " ")
	shade, known := shades[strings.TrimSuffix(word, ",")]
	if !known {
		return text
	}
	return fmt.Sprint(shade, text, noColour)
}

// stateColumn reports whether a line is the header of a table, and where its states begin, or -1 if it has none.
func stateColumn(line string) (column int, header bool) {
	cells := strings.Split(line, "   ")
	if len(cells) < 2 || strings.ToUpper(line) != line || strings.ContainsAny(line, ":/0123456789") {
		return -1, false
	}
	at := 0
	for _, cell := range cells {
		name := strings.TrimLeft(cell, " ")
		if slices.Contains(stateColumns, strings.TrimSpace(name)) {
			return at + len(cell) - len(name), true
		}
		at += len(cell) + 3
	}
	return -1, true
}
