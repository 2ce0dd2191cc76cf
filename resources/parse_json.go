package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// syntaxError reports the line at which a body is not valid YAML or JSON.
type syntaxError struct {
	line   int
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.reason) }

// jsonParser converts JSON text to nodes, with the tokens of encoding/json (tokensOf). It refuses repeated keys,
// tracks lines and limits the number of nodes.
type jsonParser struct {
	data []byte
	dec  jsonTokens
	// counted is the offset up to which line counts line breaks.
	counted, line int
	// values counts the created nodes.
	values int
	// nodes are those for the next values, which are discarded together.
	nodes []node
	// open are the members so far of the objects that the parser is in.
	open []nodeField
}

// someNodes is how many nodes are allocated at once, at most. A value takes about nodeBytes of a usual text.
const (
	someNodes = 32
	nodeBytes = 16
)

func (p *jsonParser) node() *node {
	if len(p.nodes) == 0 {
		p.nodes = make([]node, min(1+(len(p.data)-p.counted)/nodeBytes, someNodes))
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	n.line = p.line
	return n
}

// parseJSON reads the concatenated values of data. data must be UTF-8.
func parseJSON(data []byte) ([]*node, error) {
	p := &jsonParser{data: data, dec: tokensOf(data), line: 1}
	var docs []*node
	for {
		n, err := p.value(0)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if docs = append(docs, n); len(docs) > MaxDocuments {
			return nil, p.errorf("%s", tooManyDocuments())
		}
	}
}

// value reads one value. It returns io.EOF at the end of the data. Only the outermost call may return io.EOF to its
// caller.
func (p *jsonParser) value(depth int) (*node, error) {
	tok, err := p.token()
	if err != nil {
		return nil, err
	}
	if p.values++; p.values > MaxValues {
		return nil, p.errorf("more than %d values: split it", MaxValues)
	}
	n := p.node()
	n.kind, n.text = tok.kind, tok.text
	if tok.delim == 0 {
		return n, nil
	}
	if depth >= MaxDepth {
		return nil, p.errorf("nested deeper than %d levels", MaxDepth)
	}
	if tok.delim == '[' {
		err = p.array(n, depth+1)
	} else {
		err = p.object(n, depth+1)
	}
	if errors.Is(err, io.EOF) {
		err = p.errorf("not JSON: the text ends inside %s", n.kind)
	}
	return n, err
}

func (p *jsonParser) array(n *node, depth int) error {
	for p.dec.More() {
		item, err := p.value(depth)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.token()
	return err
}

func (p *jsonParser) object(n *node, depth int) error {
	before := len(p.open)
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return err
		}
		line := p.line
		v, err := p.value(depth)
		if err != nil {
			return err
		}
		p.open = append(p.open, nodeField{name: tok.text, line: line, value: v})
	}
	n.fields = slices.Clone(p.open[before:])
	p.open = p.open[:before]
	if name, line, twice := repeatedKey(n.fields); twice {
		return &syntaxError{line: line, reason: fmt.Sprintf("the key %q appears twice", name)}
	}
	_, err := p.token()
	return err
}

func (p *jsonParser) token() (jsonToken, error) {
	tok, err := p.dec.token()
	offset := int(p.dec.InputOffset())
	p.line += bytes.Count(p.data[p.counted:offset], []byte("\n"))
	p.counted = offset
	if err == nil || errors.Is(err, io.EOF) {
		return tok, err
	}
	return jsonToken{}, p.refused(err)
}

// refused returns an error with the line of the refused token.
func (p *jsonParser) refused(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at := min(int(syntax.Offset), len(p.data))
		return &syntaxError{line: 1 + bytes.Count(p.data[:at], []byte("\n")), reason: "not JSON: " + syntax.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return p.errorf("not JSON: the text ends in the middle of a value")
	default:
		return p.errorf("not JSON: %v", err)
	}
}

func (p *jsonParser) errorf(format string, args ...any) error {
	return &syntaxError{line: p.line, reason: fmt.Sprintf(format, args...)}
}

// repeatedKey returns a name that appears twice, and the line of the second field.
func repeatedKey(fields []nodeField) (name string, line int, twice bool) {
	if len(fields) > 16 {
		seen := make(map[string]bool, len(fields))
		for _, f := range fields {
			if seen[f.name] {
				return f.name, f.line, true
			}
			seen[f.name] = true
		}
		return "", 0, false
	}
	for i := range fields {
		for j := range i {
			if fields[i].name == fields[j].name {
				return fields[i].name, fields[i].line, true
			}
		}
	}
	return "", 0, false
}
