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
	// aliased counts the values in the result that come from an alias, and the members that merge keys visit.
	aliased int
	// inAlias is the number of aliases around the current value.
	inAlias int
}

// parseYAML reads the documents of data and skips empty ones.
func parseYAML(data []byte) ([]*node, error) {
	if line, many := tooManyTags(data); many {
		return nil, &syntaxError{line: line, reason: fmt.Sprintf("%s appears more than %d times: write the tags out",
			tagDirective, maxTagDirectives)}
	}
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
			return nil, yamlSyntaxError(data, err)
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
			return nil, &syntaxError{line: n.line, reason: tooManyDocuments()}
		}
	}
}

// tagDirective declares a shorthand for tags. The decoder compares each with all before it.
const (
	tagDirective     = "%TAG"
	maxTagDirectives = 100
)

// tooManyTags returns the line of the first tagDirective over the limit. It counts those in strings too.
func tooManyTags(data []byte) (line int, many bool) {
	if bytes.Count(data, []byte(tagDirective)) <= maxTagDirectives {
		return 0, false
	}
	at := 0
	for range maxTagDirectives + 1 {
		at += bytes.Index(data[at:], []byte(tagDirective)) + len(tagDirective)
	}
	return 1 + bytes.Count(data[:at], []byte("\n")), true
}

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// tabIndent matches a line that a tab indents.
var tabIndent = regexp.MustCompile(`^ *\t`)

// yamlSyntaxError names the line of a syntax error, and a tab as its cause.
func yamlSyntaxError(data []byte, err error) error {
	m := yamlErrorLine.FindStringSubmatch(err.Error())
	if m == nil {
		return &syntaxError{line: 1, reason: "not YAML: " + err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	lines := bytes.Split(data, []byte("\n"))
	for at := max(line, 1); at <= min(line+1, len(lines)); at++ { // the decoder may name the line before
		if tabIndent.Match(lines[at-1]) {
			return &syntaxError{line: at, reason: "not YAML: a tab indents the line: use spaces"}
		}
	}
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
		return nil, &syntaxError{line: line, reason: fmt.Sprintf("the key %q appears twice", name)}
	}
	return n, p.merge(n, merged)
}

// merge implements YAML's `<<`: it adds the members of each of merged, an object or a list of objects, that n does not
// have.
func (p *yamlParser) merge(n *node, merged []*node) error {
	if len(merged) == 0 {
		return nil
	}
	have := make(map[string]bool, len(n.fields))
	for _, f := range n.fields {
		have[f.name] = true
	}
	for _, m := range merged {
		objects := []*node{m}
		if m.kind == arrayNode {
			objects = m.items
		}
		for _, o := range objects {
			if o.kind != objectNode {
				return &syntaxError{line: o.line, reason: "a merge key takes an object or a list of objects"}
			}
			if err := p.add(n, o, have); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the members of m that n does not have, and notes them in have.
func (p *yamlParser) add(n, m *node, have map[string]bool) error {
	if p.aliased += len(m.fields); p.aliased > MaxAliasedNodes {
		return &syntaxError{line: m.line, reason: fmt.Sprintf("merge keys add more than %d values: write them out",
			MaxAliasedNodes)}
	}
	for _, f := range m.fields {
		if !have[f.name] {
			have[f.name] = true
			n.fields = append(n.fields, f)
		}
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
