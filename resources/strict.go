package resources

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fieldPath is the path of a value in its document. It becomes text only if there is a problem at that path. A walk has one
// for each level, and changes its name or index from value to value.
type fieldPath struct {
	parent *fieldPath
	name   string
	index  int
}

func (p *fieldPath) field(name string) *fieldPath {
	return &fieldPath{parent: p, name: name, index: -1}
}
func (p *fieldPath) item(i int) *fieldPath { return &fieldPath{parent: p, index: i} }

// String returns the path as people write it: `spec.rules[0].default`.
func (p *fieldPath) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.index >= 0:
		return before + "[" + strconv.Itoa(p.index) + "]"
	case p.name == "" || strings.ContainsAny(p.name, "./[]\" ") || p.parent != nil && p.parent.name == "labels":
		return before + "[" + strconv.Quote(p.name) + "]"
	case before == "":
		return p.name
	default:
		return before + "." + p.name
	}
}

// strict checks a document against a schema: every field must be known, and every value of the required kind. It
// removes members that are null, because null means absent. Fields keep the user's spelling.
type strict struct {
	problems []FieldProblem
}

func (c *strict) fail(n *node, at *fieldPath, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.line
	}
	c.failLine(line, at, format, args...)
}

func (c *strict) failLine(line int, at *fieldPath, format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, FieldProblem{Field: at.String(), Reason: fmt.Sprintf(format, args...), Line: line})
	}
}

func (c *strict) check(n *node, s *schema, at *fieldPath) {
	switch s.shape {
	case anyShape:
	case objectShape:
		c.want(n, objectNode, at)
	case fieldsShape:
		c.object(n, s, at)
	case mapShape:
		if c.want(n, objectNode, at) {
			here := at.field("")
			for i := range n.fields {
				here.name = n.fields[i].name
				c.check(n.fields[i].value, s.elem, here)
			}
		}
	case listShape:
		if c.want(n, arrayNode, at) {
			here := at.item(0)
			for i, item := range n.items {
				here.index = i
				c.check(item, s.elem, here)
			}
		}
	case stringShape:
		c.want(n, stringNode, at)
	case boolShape:
		c.want(n, boolNode, at)
	case integerShape:
		c.integer(n, s, at)
	case numberShape:
		c.want(n, numberNode, at)
	case enumShape:
		c.enum(n, s, at)
	case stringsShape:
		c.strings(n, at)
	case intOrStringShape:
		if n.kind != stringNode {
			c.integer(n, &schema{max: math.MaxInt64}, at)
		}
	}
}

// want reports whether n is of the kind. If it is not, want records a problem.
func (c *strict) want(n *node, kind nodeKind, at *fieldPath) bool {
	if n.kind == kind {
		return true
	}
	hint := ""
	if kind == stringNode && (n.kind == numberNode || n.kind == boolNode) {
		hint = ": put it in quotes"
	}
	c.fail(n, at, "want %s, got %s%s", kind, n.kind, hint)
	return false
}

func (c *strict) object(n *node, s *schema, at *fieldPath) {
	if !c.want(n, objectNode, at) {
		return
	}
	kept := n.fields[:0]
	var respelled []string // canonical names of fields in another spelling
	here := at.field("")
	for _, f := range n.fields {
		here.name = f.name
		known, ok := s.fields[f.name]
		if !ok {
			c.failLine(f.line, here, "unknown field%s", Suggestion(f.name, s.names()))
			continue
		}
		if f.value.kind == nullNode {
			if s.noNull {
				c.failLine(f.line, here, "is null: give its values, or leave it out to mean all")
			}
			continue
		}
		c.check(f.value, known.schema, here)
		if f.name != known.name {
			respelled = append(respelled, known.name)
		}
		kept = append(kept, f)
	}
	n.fields = kept
	for _, name := range respelled {
		if other := n.get(name); other != nil {
			c.fail(other, at.field(name), "appears twice, in two spellings")
		}
	}
}

func (c *strict) integer(n *node, s *schema, at *fieldPath) {
	if !c.want(n, numberNode, at) {
		return
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v != math.Trunc(v) {
		c.fail(n, at, "want a whole number, got %s", n.text)
		return
	}
	if v < s.min || v > s.max {
		c.fail(n, at, "want a whole number from %.0f to %.0f, got %s", s.min, s.max, n.text)
		return
	}
	n.text = strconv.FormatFloat(v, 'f', -1, 64) // 1e3 and 10.0 would not decode into an integer
}

func (c *strict) enum(n *node, s *schema, at *fieldPath) {
	if n.kind == numberNode { // tools of peers also write numbers
		if i, err := strconv.Atoi(n.text); err == nil && i >= 0 && i < len(s.enum) {
			return
		}
	} else if !c.want(n, stringNode, at) {
		return
	}
	for _, name := range s.enum {
		if n.text == name {
			return
		}
	}
	c.fail(n, at, "unknown value %q, want one of %s", n.text, strings.Join(s.enum, ", "))
}

func (c *strict) strings(n *node, at *fieldPath) {
	switch n.kind {
	case stringNode:
	case arrayNode:
		for i, item := range n.items {
			c.want(item, stringNode, at.item(i))
		}
	default:
		c.fail(n, at, "want a string or a list of strings, got %s", n.kind)
	}
}
