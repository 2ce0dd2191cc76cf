package resources

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format is the syntax of a body.
type Format uint8

const (
	// AnyFormat is JSON if the text parses as JSON, otherwise YAML.
	AnyFormat Format = iota
	// FormatJSON is one or more concatenated JSON objects.
	FormatJSON
	// FormatYAML is one or more YAML documents.
	FormatYAML
)

// DecodeOptions controls how bodies are read. The zero value is right for files.
type DecodeOptions struct {
	Format Format
	// Lists allows a body that is one JSON array. Its items are the documents.
	Lists bool
}

// DecodeDocuments reads the resources of a body: one or more documents, each in Universal or Kubernetes form, at most
// MaxDocumentBytes in total. The items of a List of Kubernetes, which kubectl prints, are documents. It skips empty
// documents. Labels are those that the user wrote; Home adds the computed
// ones. Fields that servers add (kri, times, status, snis) are ignored. If a document has an unknown field, a value of
// the wrong kind or a syntax error, DecodeDocuments returns no resources and a *DocumentsError that lists each problem
// with its path and line.
func DecodeDocuments(data []byte, o DecodeOptions) ([]*Resource, error) {
	docs, err := parseDocuments(data, o.Format)
	if err != nil {
		return nil, err
	}
	if o.Lists && len(docs) == 1 && docs[0].kind == arrayNode {
		list := docs[0]
		if len(list.items) > MaxDocuments {
			return nil, bodyError(list.line, tooManyDocuments())
		}
		docs = list.items
	}
	if docs = listed(docs); len(docs) > MaxDocuments {
		return nil, bodyError(docs[MaxDocuments].line, tooManyDocuments())
	}
	out := make([]*Resource, 0, len(docs))
	failed := &DocumentsError{}
	for i, doc := range docs {
		r, invalid := decodeDocument(doc)
		if invalid != nil {
			invalid.Document = i + 1
			failed.Invalid = append(failed.Invalid, invalid)
			continue
		}
		out = append(out, r)
	}
	if len(failed.Invalid) > 0 {
		return nil, failed
	}
	return out, nil
}

// listed replaces each List of Kubernetes by its items.
func listed(docs []*node) []*node {
	if !slices.ContainsFunc(docs, isList) {
		return docs
	}
	var out []*node
	for _, doc := range docs {
		if isList(doc) {
			out = append(out, doc.get("items").items...)
			continue
		}
		out = append(out, doc)
	}
	return out
}

// isList reports whether a document is a List of Kubernetes.
func isList(doc *node) bool {
	if doc.kind != objectNode {
		return false
	}
	version, kind, items := doc.get("apiVersion"), doc.get("kind"), doc.get("items")
	return version != nil && version.text == "v1" && kind != nil && kind.text == "List" && items != nil && items.kind == arrayNode
}

func parseDocuments(data []byte, format Format) ([]*node, error) {
	if len(data) > MaxDocumentBytes {
		return nil, bodyError(0, fmt.Sprintf("is %d bytes long, more than %d: split it", len(data), MaxDocumentBytes))
	}
	if !utf8.Valid(data) {
		return nil, bodyError(0, "is not UTF-8 text")
	}
	docs, err := parse(data, format)
	if syntax := (*syntaxError)(nil); errors.As(err, &syntax) {
		return nil, bodyError(syntax.line, syntax.reason)
	}
	return docs, err
}

func parse(data []byte, format Format) ([]*node, error) {
	switch {
	case format == FormatJSON:
		return parseJSON(data)
	case format == FormatYAML || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")):
		return parseYAML(data)
	}
	docs, err := parseJSON(data)
	if err == nil {
		return docs, nil
	}
	if docs, yamlErr := parseYAML(data); yamlErr == nil { // YAML's flow style also begins with a brace
		return docs, nil
	}
	return nil, err
}

func bodyError(line int, reason string) error {
	problem := FieldProblem{Field: "document", Reason: reason, Line: line}
	return &DocumentsError{Invalid: []*InvalidError{{Problems: []FieldProblem{problem}}}}
}

// decodeDocument reads one document in either form.
func decodeDocument(doc *node) (*Resource, *InvalidError) {
	c := &strict{}
	if doc.kind != objectNode {
		c.fail(doc, (*fieldPath)(nil).field("document"), "want an object with type, name and spec, got %s", doc.kind)
		return nil, &InvalidError{Problems: c.problems}
	}
	var h header
	if doc.get("apiVersion") != nil || doc.get("kind") != nil {
		h = kubernetesHeader(c, doc)
	} else {
		h = universalHeader(c, doc)
	}
	var spec *Spec
	if h.descriptor != nil {
		spec = decodeSpec(c, &h)
	}
	if len(c.problems) > 0 {
		return nil, &InvalidError{Key: h.key, Problems: c.problems}
	}
	return &Resource{Key: h.key, Labels: h.labels, Spec: spec}, nil
}

// decodeSpec checks the spec and converts it to the stored form.
func decodeSpec(c *strict, h *header) *Spec {
	before := len(c.problems)
	at := (*fieldPath)(nil)
	if h.nested {
		at = at.field("spec")
	}
	c.check(h.spec, schemaOf(h.descriptor.Type), at)
	if len(c.problems) > before {
		return nil
	}
	raw := h.spec.appendJSON(nil)
	if h.descriptor.Codec == JSON {
		return &Spec{raw: raw, make: h.descriptor.newSpec, strict: true}
	}
	m := h.descriptor.newSpec().(proto.Message)
	if err := protojson.Unmarshal(raw, m); err != nil {
		if bytes.Contains(raw, []byte(shownMark)) { // on bytes: validation decodes the spec when the value is back
			if spec, err := NewSpec(h.descriptor.Type, raw); err == nil {
				return spec
			}
		}
		c.fail(h.spec, (*fieldPath)(nil).field("spec"), "%v", err)
		return nil
	}
	spec, err := specOfMessage(h.descriptor, m)
	if err != nil {
		c.fail(h.spec, (*fieldPath)(nil).field("spec"), "%v", err)
	}
	return spec
}

// specOfMessage is NewSpecOf for the message of a document, which becomes the typed form. Nobody changes it any more.
func specOfMessage(d *Descriptor, m proto.Message) (*Spec, error) {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	docs, err := parseJSON(raw) // which costs less than encoding/json does
	if err != nil || len(docs) != 1 {
		return newSpec(d, raw)
	}
	spec := newSpecOf(d, docs[0].appendJSON(nil))
	spec.once.Do(func() { spec.typed = m })
	return spec, nil
}
