package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"

	"github.com/causeway-mesh/causeway/printing"
)

// template is the expression of -o jsonpath=: text, and paths in braces. {range PATH}...{end} repeats its content for
// each value of the path.
type template []templatePart

// templatePart is text, a path, or a path with the parts to repeat for each of its values.
type templatePart struct {
	text string
	path *jsonpath.Path
	each template
}

const (
	// maxTemplate bounds an expression, in bytes, and maxRanges the nesting of its ranges.
	maxTemplate = 4096
	maxRanges   = 8
)

// parseTemplate parses an expression. An expression without braces is a path.
func parseTemplate(text string) (template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("the expression has %d bytes, more than %d", len(text), maxTemplate)
	}
	if !strings.Contains(text, "{") {
		text = "{" + text + "}"
	}
	parsed, rest, err := parseParts(text, 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("{end} without {range}")
	}
	return parsed, err
}

// parseParts parses up to the {end} of the current range, or the end of the text. rest is what follows.
func parseParts(text string, depth int) (parts template, rest string, err error) {
	if depth > maxRanges {
		return nil, "", fmt.Errorf("ranges nest more than %d deep", maxRanges)
	}
	for text != "" {
		before, after, found := strings.Cut(text, "{")
		if before != "" {
			parts = append(parts, templatePart{text: before})
		}
		if !found {
			break
		}
		inner, behind, closed := cutBrace(after)
		if !closed {
			return nil, "", fmt.Errorf("{%s: a brace is not closed", after)
		}
		text = behind
		inner = strings.TrimSpace(inner)
		of, isRange := strings.CutPrefix(inner, "range ")
		switch {
		case inner == "end":
			if depth == 0 {
				return nil, "end", nil
			}
			return parts, text, nil
		case strings.HasPrefix(inner, `"`):
			literal, err := strconv.Unquote(inner)
			if err != nil {
				return nil, "", fmt.Errorf("{%s}: want a text in double quotes, such as {\"\\n\"}", inner)
			}
			parts = append(parts, templatePart{text: literal})
		default:
			part := templatePart{}
			if part.path, err = parsePath(of); err != nil {
				return nil, "", err
			}
			if isRange {
				if part.each, text, err = parseParts(text, depth+1); err != nil {
					return nil, "", err
				}
				if part.each == nil {
					part.each = template{}
				}
			}
			parts = append(parts, part)
		}
	}
	if depth > 0 {
		return nil, "", fmt.Errorf("{range} without {end}")
	}
	return parts, "", nil
}

// cutBrace cuts at the unquoted brace that ends an expression.
func cutBrace(text string) (before, after string, found bool) {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '}':
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

// parsePath parses a path of RFC 9535. Its $ may be missing or @, and it may be in braces.
func parsePath(text string) (*jsonpath.Path, error) {
	bare := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(bare, "{"); ok && strings.HasSuffix(inner, "}") {
		bare = strings.TrimSuffix(inner, "}")
	}
	if bare == "" {
		return nil, fmt.Errorf("a path is empty: want one such as .name")
	}
	if bare[0] != '$' && bare[0] != '@' && bare[0] != '.' && bare[0] != '[' {
		bare = "." + bare
	}
	bare = "$" + strings.TrimLeft(bare, "$@")
	if bare == "$." {
		bare = "$"
	}
	path, err := jsonpath.Parse(bare)
	if err != nil {
		hint := ""
		if strings.ContainsAny(bare, `\/-`) {
			hint = "; a name that is not letters and digits goes in brackets: .labels['kuma.io/workload']"
		}
		return nil, fmt.Errorf("%q is not a path: %s%s", text, strings.TrimPrefix(err.Error(), "jsonpath: "), hint)
	}
	return path, nil
}

// alone returns the only text of a template with one path. It may have several lines, such as a certificate.
func (t template) alone(v any) (text string, ok bool) {
	if len(t) != 1 || t[0].path == nil || t[0].each != nil {
		return "", false
	}
	if found := t[0].path.Select(v); len(found) == 1 {
		text, ok = found[0].(string)
	}
	return text, ok
}

// write writes the template with the values of v, each on one line, so that anything else is from the template.
func (t template) write(w io.Writer, v any) {
	for _, part := range t {
		switch {
		case part.path == nil:
			fmt.Fprint(w, part.text)
		case part.each != nil:
			for _, one := range part.path.Select(v) {
				part.each.write(w, one)
			}
		default:
			fmt.Fprint(w, printing.Line(selectedText(part.path, v)))
		}
	}
}

// selectedText returns the values of a path on one line, or "" if there is none.
func selectedText(path *jsonpath.Path, v any) string {
	var texts []string
	for _, one := range path.Select(v) {
		texts = append(texts, valueText(one))
	}
	return strings.Join(texts, " ")
}

// valueText returns a string unchanged and everything else as JSON.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// decodedJSON converts v to maps and lists through its JSON form. It keeps numbers as they are written.
func decodedJSON(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(raw, &out)
}
