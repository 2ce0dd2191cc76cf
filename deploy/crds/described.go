package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/test/notes"
)

//go:embed fields.txt
var fieldLines string

// descriptions returns the texts of kubectl explain for fields, by resources.Field.Origin, and for types, by name: the
// lines of fields.txt, or else the comments of the code.
func descriptions(root string) (func(origin string) string, error) {
	about, err := notes.Read(root)
	if err != nil {
		return nil, err
	}
	ours, err := fields()
	if err != nil {
		return nil, err
	}
	return func(origin string) string {
		for _, from := range []map[string]string{ours, about.Fields, about.Types} {
			if text := from[origin]; text != "" {
				return text
			}
		}
		return ""
	}, nil
}

// fields reads fields.txt.
func fields() (map[string]string, error) {
	out := map[string]string{}
	for i, line := range strings.Split(fieldLines, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		origin, text, ok := strings.Cut(line, ": ")
		if !ok || out[origin] != "" {
			return nil, fmt.Errorf("fields.txt:%d: want Type.Field: text, once for each field", i+1)
		}
		out[origin] = text
	}
	return out, nil
}
