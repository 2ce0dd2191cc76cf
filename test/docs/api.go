package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/zone/inspect"
)

// document is the part of OpenAPI that the page shows.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Summary     string
	Parameters  []parameter
	RequestBody *struct {
		Content map[string]struct{ Schema *schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema *schema }
	}
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        string
	Description string
	Format      string
	Enum        []any
	Properties  map[string]*schema
	Required    []string
	Items       *schema
	AllOf       []*schema
	OneOf       []*schema
	AnyOf       []*schema
	Additional  json.RawMessage `json:"additionalProperties"`
}

func apiPage() (string, error) {
	var doc document
	if err := json.Unmarshal(inspect.OpenAPI(), &doc); err != nil {
		return "", fmt.Errorf("openapi: %w", err)
	}
	var b strings.Builder
	b.WriteString("# HTTP API\n\n" + written + `
Both servers serve it at their ` + "`--api-address`" + `; a path that only one of them serves says so. The same in a form for programs:
` + "`GET /openapi.json`" + `. Errors are objects of the shape [Error](#error). Who may do what: [security](../security.md).

## Operations
`)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			describeOperation(&b, strings.ToUpper(method)+" "+path, &op)
		}
	}
	b.WriteString("\n## Shapes\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "\n%s\n", s.Description)
		}
		if len(s.Properties) == 0 {
			fmt.Fprintf(&b, "\nIs: %s.\n", s.text())
			continue
		}
		b.WriteString("\n| field | is | |\n| --- | --- | --- |\n")
		s.rows(&b, "")
	}
	return b.String(), nil
}

func describeOperation(b *strings.Builder, title string, op *operation) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n", title, op.Summary)
	var rows strings.Builder
	for _, p := range op.Parameters {
		if p.In != "path" || p.Description != "" {
			fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", p.Name, p.In, cmp.Or(p.Schema.text(), "text"), p.Description)
		}
	}
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\n| parameter | in | is | |\n| --- | --- | --- | --- |\n%s", &rows)
	}
	if op.RequestBody != nil {
		for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
			s := op.RequestBody.Content[kind].Schema
			fmt.Fprintf(b, "\nBody, `%s`: %s.\n", kind, s.text())
			if s != nil && len(s.Properties) > 0 {
				b.WriteString("\n| field | is | |\n| --- | --- | --- |\n")
				s.rows(b, "")
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answer := op.Responses[status]
		for _, kind := range slices.Sorted(maps.Keys(answer.Content)) {
			if status != "default" {
				fmt.Fprintf(b, "\nAnswer %s, `%s`: %s.\n", status, kind, answer.Content[kind].Schema.text())
			}
		}
	}
}

// rows writes the properties of an object, and of unnamed objects inside it.
func (s *schema) rows(b *strings.Builder, path string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		about := p.Description
		if slices.Contains(s.Required, name) {
			about = strings.TrimSpace("Always there. " + about)
		}
		at := path + name
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", at, p.text(), strings.ReplaceAll(about, "|", `\|`))
		for p.Items != nil {
			p, at = p.Items, at+"[]"
		}
		p.rows(b, at+".")
	}
}

// text describes a value in words.
func (s *schema) text() string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case len(s.AllOf) > 0:
		return joined(s.AllOf, " and ")
	case len(s.OneOf) > 0:
		return joined(s.OneOf, " or ")
	case len(s.AnyOf) > 0:
		return joined(s.AnyOf, " or ")
	case len(s.Enum) > 0:
		var names []string
		for _, e := range s.Enum {
			names = append(names, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(names, ", ")
	case s.Type == "array":
		return "list of: " + s.Items.text()
	case s.Type == "object" && len(s.Additional) > 0 && s.Additional[0] == '{':
		values := &schema{}
		if json.Unmarshal(s.Additional, values) == nil {
			return "object, its values: " + values.text()
		}
	case s.Format != "":
		return s.Type + ", " + s.Format
	}
	return cmp.Or(s.Type, "any value")
}

func joined(all []*schema, word string) string {
	var out []string
	for _, s := range all {
		out = append(out, s.text())
	}
	return strings.Join(out, word)
}
