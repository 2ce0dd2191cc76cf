package resources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	templates "text/template/parse"
)

// maxTemplateBytes bounds a template. What it renders to, a SPIFFE ID or a host name, has its own bound.
const maxTemplateBytes = 1024

// TrustDomainVariables returns the variables of a trust domain template. The caller owns the slice.
func TrustDomainVariables() []string { return []string{"Mesh", "Zone"} }

// PathVariables returns the variables of a path template, besides labels. The caller owns the slice.
func PathVariables() []string {
	return []string{"TrustDomain", "Namespace", "ServiceAccount", "Workload"}
}

// IdentityTemplate is a text with placeholders for properties of a Dataplane: `{{ .Variable }}`, and in paths `{{ label
// "key" }}`. It has the form of a Go template without computation. It is immutable.
type IdentityTemplate struct {
	parts []templatePart
}

// templatePart is a text, a variable or a label.
type templatePart struct{ text, variable, label string }

// ParseIdentityTemplate parses a template that may name the given variables. Labels are allowed only if one of the
// variables is a Dataplane's.
func ParseIdentityTemplate(text string, variables []string) (*IdentityTemplate, error) {
	parts, err := parseTemplate(text, variables, slices.Contains(variables, "Workload"))
	if err != nil {
		return nil, err
	}
	return &IdentityTemplate{parts: parts}, nil
}

// parseTemplate parses text with placeholders for the given variables and, if labels is set, for labels.
func parseTemplate(text string, variables []string, labels bool) ([]templatePart, error) {
	want := "want text with {{ ." + strings.Join(variables, " }}, {{ .") + " }}"
	if labels {
		want += ` or {{ label "key" }}`
	}
	if len(text) > maxTemplateBytes {
		return nil, fmt.Errorf("is %d bytes long, want at most %d", len(text), maxTemplateBytes)
	}
	trees, err := templates.Parse("template", text, "{{", "}}", map[string]any{"label": true})
	if err != nil {
		return nil, fmt.Errorf("%q does not parse: %s", shorten(text), want)
	}
	var out []templatePart
	tree := trees["template"]
	if tree == nil || tree.Root == nil || len(trees) > 1 {
		return nil, fmt.Errorf("%q holds no text: %s", shorten(text), want)
	}
	for _, node := range tree.Root.Nodes {
		part, ok := readPart(node)
		switch {
		case !ok, part.label != "" && !labels:
			return nil, fmt.Errorf("%s: %s", shorten(node.String()), want)
		case part.variable != "" && !slices.Contains(variables, part.variable):
			return nil, fmt.Errorf("%s is not known here: %s", shorten(node.String()), want)
		}
		out = append(out, part)
	}
	return out, nil
}

func readPart(node templates.Node) (templatePart, bool) {
	if text, ok := node.(*templates.TextNode); ok {
		return templatePart{text: string(text.Text)}, true
	}
	action, ok := node.(*templates.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 || len(action.Pipe.Cmds) != 1 {
		return templatePart{}, false
	}
	args := action.Pipe.Cmds[0].Args
	switch first := args[0].(type) {
	case *templates.FieldNode:
		return templatePart{variable: first.Ident[0]}, len(args) == 1 && len(first.Ident) == 1
	case *templates.IdentifierNode:
		if first.Ident == "label" && len(args) == 2 {
			if key, ok := args[1].(*templates.StringNode); ok {
				return templatePart{label: key.Text}, key.Text != ""
			}
		}
	}
	return templatePart{}, false
}

// templateValue matches a value that can be in a segment of a SPIFFE ID. It cannot begin another segment.
var templateValue = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Render fills in the placeholders. A value that is empty, or could change the meaning of the text around it, is an
// error that names it. label may be nil if the template contains no labels.
func (t *IdentityTemplate) Render(variable, label func(name string) string) (string, error) {
	var out strings.Builder
	for _, part := range t.parts {
		var value, name string
		switch {
		case part.variable != "":
			name, value = "."+part.variable, variable(part.variable)
		case part.label != "":
			name, value = "label "+part.label, label(part.label)
		default:
			out.WriteString(part.text)
			continue
		}
		if value == "" {
			return "", fmt.Errorf("%s is empty", name)
		}
		if !templateValue.MatchString(value) {
			return "", fmt.Errorf("%s is %q: want letters, digits, '.', '-' and '_'", name, shorten(value))
		}
		out.WriteString(value)
	}
	if out.Len() > MaxSpiffeIDBytes {
		return "", fmt.Errorf("the result is longer than %d bytes", MaxSpiffeIDBytes)
	}
	return out.String(), nil
}
