package resources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlParser converts YAML text to nodes. It resolves aliases and merge keys itself, so that it can limit what they
// add.
type yamlParser struct {
	// values counts the created nodes.
	values int
	// aliased counts the values in the result that come from an alias.
	aliased int
	// inAlias is the number of aliases around the current value.
	inAlias int
}

// parseYAML reads the documents of data and skips empty ones.
func parseYAML(data []byte) ([]*node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	p := &yamlParser{}
	var docs []*node
	for {
		var y yaml.Node
		err := dec.Decode(&y)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlSyntaxError(err)
		}
		if y.Kind != yaml.DocumentNode || len(y.Content) != 1 {
			continue
		}
		n, err := p.value(y.Content[0], 0)
		if err != nil {
			return nil, err
		}
		if n.kind == nullNode {
			continue
		}
		if docs = append(docs, n); len(docs) > MaxDocuments {
			return nil, &syntaxError{line: n.line, reason: fmt.Sprintf("more than %d documents", MaxDocuments)}
		}
	}
}

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func yamlSyntaxError(err error) error {
	m := yamlErrorLine.FindStringSubmatch(err.Error())
	if m == nil {
		return &syntaxError{line: 1, reason: "not YAML: " + err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	return &syntaxError{line: max(line, 1), reason: "not YAML: " + strings.TrimPrefix(err.Error(), m[0])}
}

func (p *yamlParser) value(y *yaml.Node, depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, yamlErrorf(y, "nested deeper than %d levels", MaxDepth)
	}
	if p.values++; p.values > MaxValues {
		return nil, yamlErrorf(y, "more than %d values: split it", MaxValues)
	}
	if p.inAlias > 0 {
		if p.aliased++; p.aliased > MaxAliasedNodes {
			return nil, yamlErrorf(y, "aliases add more than %d values: write them out", MaxAliasedNodes)
		}
	}
	switch y.Kind {
	case yaml.AliasNode:
		p.inAlias++
		n, err := p.value(y.Alias, depth+1)
		p.inAlias--
		return n, err
	case yaml.ScalarNode:
		return scalar(y)
	case yaml.SequenceNode:
		if tag := y.ShortTag(); tag != "!!seq" {
			return nil, yamlErrorf(y, "the tag %s is not supported", tag)
		}
		n := &node{kind: arrayNode, line: y.Line}
		for _, c := range y.Content {
			item, err := p.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	case yaml.MappingNode:
		return p.mapping(y, depth)
	default:
		return nil, yamlErrorf(y, "not a value")
	}
}

func (p *yamlParser) mapping(y *yaml.Node, depth int) (*node, error) {
	if tag := y.ShortTag(); tag != "!!map" {
		return nil, yamlErrorf(y, "the tag %s is not supported", tag)
	}
	n := &node{kind: objectNode, line: y.Line}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, yamlErrorf(key, "a key must be a plain string")
		}
		v, err := p.value(y.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		n.fields = append(n.fields, nodeField{name: key.Value, line: key.Line, value: v})
	}
	if name, line, twice := repeatedKey(n.fields); twice {
		return nil, &syntaxError{line: line, reason: fmt.Sprintf("the key %q is there twice", name)}
	}
	for _, m := range merged {
		if err := n.merge(m); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// merge implements YAML's `<<`: it adds the members of m, an object or a list of objects, that n does not have.
func (n *node) merge(m *node) error {
	switch m.kind {
	case objectNode:
		have := make(map[string]bool, len(n.fields))
		for _, f := range n.fields {
			have[f.name] = true
		}
		for _, f := range m.fields {
			if !have[f.name] {
				n.fields = append(n.fields, f)
			}
		}
	case arrayNode:
		for _, item := range m.items {
			if item.kind != objectNode {
				return &syntaxError{line: item.line, reason: "a merge key takes an object or a list of objects"}
			}
			if err := n.merge(item); err != nil {
				return err
			}
		}
	default:
		return &syntaxError{line: m.line, reason: "a merge key takes an object or a list of objects"}
	}
	return nil
}

// scalar reads a scalar by the rules of YAML 1.2: "yes" and dates are strings.
func scalar(y *yaml.Node) (*node, error) {
	n := &node{line: y.Line, kind: stringNode, text: y.Value}
	switch y.ShortTag() {
	case "!!str", "!!timestamp", "!!merge":
	case "!!null":
		n.kind, n.text = nullNode, ""
	case "!!bool":
		n.kind, n.text = boolNode, strings.ToLower(y.Value)
		if n.text != "true" && n.text != "false" {
			return nil, yamlErrorf(y, "%q is not a boolean: write true or false", y.Value)
		}
	case "!!int", "!!float":
		text, err := jsonNumber(y)
		if err != nil {
			return nil, err
		}
		n.kind, n.text = numberNode, text
	default:
		return nil, yamlErrorf(y, "the tag %s is not supported", y.Tag)
	}
	return n, nil
}

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func jsonNumber(y *yaml.Node) (string, error) {
	if plainNumber.MatchString(y.Value) {
		return y.Value, nil
	}
	var i int64
	if y.Decode(&i) == nil && y.ShortTag() == "!!int" {
		return strconv.FormatInt(i, 10), nil
	}
	var f float64
	if err := y.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", yamlErrorf(y, "%q is not a number that JSON can hold", y.Value)
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}

func yamlErrorf(y *yaml.Node, format string, args ...any) error {
	return &syntaxError{line: max(y.Line, 1), reason: fmt.Sprintf(format, args...)}
}
