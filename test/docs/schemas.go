package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/notes"
)

// schemasFile is what the page completes documents by, relative to the root of the repository.
const schemasFile = "web/src/schemas.json"

// pageType is a type that users may write.
type pageType struct {
	Path string `json:"path"`
	// Mesh means that its resources belong to a mesh, Flat that its fields stand beside the name.
	Mesh  bool       `json:"mesh,omitempty"`
	Flat  bool       `json:"flat,omitempty"`
	About string     `json:"about,omitempty"`
	Spec  *pageField `json:"spec"`
}

// pageField is one place of a document.
type pageField struct {
	About  string                `json:"about,omitempty"`
	Values []string              `json:"values,omitempty"`
	Fields map[string]*pageField `json:"fields,omitempty"`
	// Each describes the values of free keys, Items those of a list.
	Each  *pageField `json:"each,omitempty"`
	Items *pageField `json:"items,omitempty"`
}

// schemasOfPage returns the content of schemasFile: the schemas by which documents are decoded, of all types that users
// may write.
func schemasOfPage(root string) (string, error) {
	read, err := notes.Read(root)
	if err != nil {
		return "", err
	}
	out := map[string]pageType{}
	for _, d := range resources.Descriptors() {
		if d.WrittenOn == resources.Nowhere {
			continue
		}
		schema := resources.OpenAPI(d.Type, func(origin string) string { return read.Fields[origin] })
		if schema == nil {
			continue
		}
		out[string(d.Type)] = pageType{Path: d.Path, Mesh: d.Scope == resources.ScopeMesh, Flat: d.Codec == resources.Protobuf,
			About: firstSentence(read.Types[string(d.Type)]), Spec: fieldOf(schema)}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(out)
	// A line for each type, so that a difference can be read.
	return strings.ReplaceAll(b.String(), `},"Mesh`, "},\n\"Mesh"), err
}

func fieldOf(schema map[string]any) *pageField {
	out := &pageField{}
	about, _ := schema["description"].(string)
	out.About = firstSentence(about)
	if schema["type"] == "boolean" {
		out.Values = []string{"false", "true"}
	}
	values, _ := schema["enum"].([]any)
	for _, v := range values {
		text, _ := v.(string)
		out.Values = append(out.Values, text)
	}
	fields, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if out.Fields == nil {
			out.Fields = map[string]*pageField{}
		}
		one, _ := fields[name].(map[string]any)
		out.Fields[name] = fieldOf(one)
	}
	if each, ok := schema["additionalProperties"].(map[string]any); ok {
		out.Each = fieldOf(each)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		out.Items = fieldOf(items)
	}
	return out
}

// firstSentence returns what fits beside a list of names.
func firstSentence(text string) string {
	first, _, found := strings.Cut(text, ". ")
	if found {
		first += "."
	}
	return first
}
