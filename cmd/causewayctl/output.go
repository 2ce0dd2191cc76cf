package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// outputFormat is the value of -o.
type outputFormat string

const (
	formatTable outputFormat = "table"
	formatWide  outputFormat = "wide"
	formatYAML  outputFormat = "yaml"
	formatJSON  outputFormat = "json"
	formatName  outputFormat = "name"
)

// The prefixes of formats that have an expression.
const (
	pathFormat    = "jsonpath="
	columnsFormat = "custom-columns="
)

func outputFormats() []string {
	return []string{string(formatTable), string(formatWide), string(formatYAML), string(formatJSON)}
}

// onlyOfGet reports whether only get has the format.
func (f outputFormat) onlyOfGet() bool {
	return f == formatName || f.expression(pathFormat) != "" || f.expression(columnsFormat) != ""
}

// document reports whether the format prints documents, or values of them.
func (f outputFormat) document() bool {
	return f == formatJSON || f == formatYAML || f.onlyOfGet() && f != formatName
}

// expression returns what follows a prefix of the format, or "" if it has another prefix.
func (f outputFormat) expression(prefix string) string {
	expression, _ := strings.CutPrefix(string(f), prefix)
	if len(expression) == len(f) {
		return ""
	}
	return expression
}

// String implements pflag.Value. The zero format is a table.
func (f *outputFormat) String() string {
	if *f == "" {
		return string(formatTable)
	}
	return string(*f)
}

// Set implements pflag.Value.
func (f *outputFormat) Set(s string) error {
	given := outputFormat(s)
	var err error
	switch {
	case given.expression(pathFormat) != "":
		_, err = parseTemplate(given.expression(pathFormat))
	case given.expression(columnsFormat) != "":
		_, err = parseColumns(given.expression(columnsFormat))
	case given == formatName, slices.Contains(outputFormats(), s):
	default:
		err = fmt.Errorf("must be one of %s; get has name, jsonpath=EXPRESSION and custom-columns=HEADER:PATH,... too",
			strings.Join(outputFormats(), ", "))
	}
	if err == nil {
		*f = given
	}
	return err
}

// Type implements pflag.Value.
func (f *outputFormat) Type() string { return "format" }

// table collects rows and prints them with aligned columns.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table, without columns that are empty in every row.
func (t *table) print(w io.Writer) error {
	keep := make([]bool, 0)
	for _, row := range t.rows {
		for i, cell := range row {
			if i >= len(keep) {
				keep = append(keep, false)
			}
			keep[i] = keep[i] || cell != ""
		}
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	if len(t.header) > 0 {
		writeRow(tw, t.header, keep)
	}
	for _, row := range t.rows {
		writeRow(tw, row, keep)
	}
	return tw.Flush()
}

func writeRow(w io.Writer, row []string, keep []bool) {
	var cells []string
	for i, cell := range row {
		if i < len(keep) && keep[i] {
			cells = append(cells, printing.Line(cell))
		}
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
}

// lineOf returns a text on one line, whatever its arguments contain.
func lineOf(format string, args ...any) string { return printing.Line(fmt.Sprintf(format, args...)) }

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printYAML writes each value as one YAML document, with keys in the order of its JSON form.
func printYAML[T any](w io.Writer, values ...T) error {
	for i, v := range values {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		doc, err := resources.EncodeYAML(raw)
		if err != nil {
			return err
		}
		if _, err := w.Write(doc); err != nil {
			return err
		}
	}
	return nil
}

// printAnswer prints v as JSON or YAML if -o requests that, and otherwise calls text.
func (c *cli) printAnswer(v any, text func() error) error {
	switch c.output {
	case formatJSON:
		return printJSON(c.out, v)
	case formatYAML:
		return printYAML(c.out, v)
	default:
		return text()
	}
}

// view is what a command shows: programs get it as JSON or YAML, people get the output of print.
type view interface{ print(w io.Writer) error }

// show prints a view, or returns err if it is not nil.
func (c *cli) show(v view, err error) error {
	if err != nil {
		return err
	}
	return c.printAnswer(v, func() error { return v.print(c.out) })
}
