package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
)

// column is one column of -o custom-columns=.
type column struct {
	header string
	path   *jsonpath.Path
}

// noValue is what a column shows for an item without the value.
const noValue = "<none>"

// parseColumns parses HEADER:PATH,...
func parseColumns(text string) ([]column, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("the columns have %d bytes, more than %d", len(text), maxTemplate)
	}
	var out []column
	for _, part := range strings.Split(text, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found || header == "" {
			return nil, fmt.Errorf("column %q: want HEADER:PATH, such as NAME:.name", part)
		}
		parsed, err := parsePath(path)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", header, err)
		}
		out = append(out, column{header, parsed})
	}
	return out, nil
}

// printColumns prints the columns of all items.
func printColumns(w io.Writer, columns []column, items []*item) error {
	t := &table{}
	for _, c := range columns {
		t.header = append(t.header, c.header)
	}
	for _, it := range items {
		v, err := decodedJSON(it.whole)
		if err != nil {
			return err
		}
		var row []string
		for _, c := range columns {
			row = append(row, cmp.Or(selectedText(c.path, v), noValue))
		}
		t.add(row...)
	}
	return t.print(w)
}

// sortItems sorts items by the value of a path: numbers before texts, and items without the value first. It fails if no
// item has it.
func sortItems(items []*item, by string) error {
	path, err := parsePath(by)
	if err != nil {
		return usagef("--sort-by: %w", err)
	}
	values, some := map[*item]any{}, false
	for _, it := range items {
		v, err := decodedJSON(it.whole)
		if err != nil {
			return err
		}
		if found := path.Select(v); len(found) > 0 {
			values[it], some = found[0], true
		}
	}
	if len(items) > 0 && !some {
		return usagef("--sort-by %s: no item has it; -o json shows what they have", by)
	}
	slices.SortStableFunc(items, func(a, b *item) int { return compareValues(values[a], values[b]) })
	return nil
}

func compareValues(a, b any) int {
	rank := func(v any) int {
		switch v.(type) {
		case nil:
			return 0
		case float64:
			return 1
		default:
			return 2
		}
	}
	x, isNumber := a.(float64)
	if y, ok := b.(float64); ok && isNumber {
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(valueText(a), valueText(b)))
}
