package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// Release is one installation of a chart.
type Release struct {
	// Chart is causeway-global or causeway-zone.
	Chart string
	// Name and Namespace are as for helm install.
	Name, Namespace string
	// Values are laid over those of the chart; see Set.
	Values map[string]any
}

// Values returns the default values of a chart.
func Values(chart string) (map[string]any, error) {
	return readYAML(path.Join("charts", chart, "values.yaml"))
}

func readYAML(name string) (map[string]any, error) {
	raw, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, yaml.Unmarshal(raw, &out)
}

// Render returns the manifests of a release as YAML documents, the namespace first. The output is that of helm
// template: the charts use only what this package implements of Helm. It knows nothing of a cluster.
func Render(r *Release) ([]byte, error) {
	folder := path.Join("charts", r.Chart)
	about, err := readYAML(path.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	data := map[string]any{
		"Values":  r.Values,
		"Release": map[string]any{"Name": r.Name, "Namespace": r.Namespace, "Service": "causewayctl"},
		"Chart":   map[string]any{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
	}
	names, err := fs.Glob(files, path.Join(folder, "templates", "*"))
	if err != nil {
		return nil, err
	}
	all := template.New(r.Chart)
	all.Funcs(functions(all))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if _, err := all.New(path.Base(name)).Option("missingkey=zero").Parse(string(text)); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %q\n  labels: {pod-security.kubernetes.io/enforce: restricted}\n",
		r.Namespace)
	for _, name := range names {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		var one bytes.Buffer
		if err := all.ExecuteTemplate(&one, path.Base(name), data); err != nil {
			return nil, err
		}
		if text := strings.TrimPrefix(strings.TrimSpace(one.String()), "---\n"); text != "" {
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return out.Bytes(), nil
}

// functions are those of Helm that the charts use.
func functions(all *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b bytes.Buffer
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			raw, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(raw), "\n"), err
		},
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(end, s string) string { return strings.TrimSuffix(s, end) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"lower":      strings.ToLower,
		"splitList":  func(at, s string) []any { return anys(strings.Split(s, at)) },
		"join": func(with string, list []any) string {
			var words []string
			for _, v := range list {
				words = append(words, fmt.Sprint(v))
			}
			return strings.Join(words, with)
		},
		"default": func(fallback, v any) any {
			if truth, _ := template.IsTrue(v); !truth {
				return fallback
			}
			return v
		},
		"int": toInt,
		"max": func(a, b any) (int, error) {
			one, err := toInt(a)
			other, err2 := toInt(b)
			return max(one, other), errors.Join(err, err2)
		},
		"add": func(a, b any) (int, error) {
			one, err := toInt(a)
			other, err2 := toInt(b)
			return one + other, errors.Join(err, err2)
		},
		"until":  func(n int) []int { return slices.Collect(upTo(n)) },
		"list":   func(v ...any) []any { return v },
		"concat": func(lists ...[]any) []any { return slices.Concat(lists...) },
		"first":  func(list []any) any { return list[0] },
		"dict": func(pairs ...any) map[string]any {
			out := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				out[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return out
		},
		"fail":   func(why string) (string, error) { return "", errors.New(why) },
		"lookup": func(_, _, _, _ string) map[string]any { return nil },
		"dig":    dig,
	}
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func toInt(v any) (int, error) {
	var n int
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	return n, err
}

// dig returns the value at the path of names in an object, or else the argument before the object.
func dig(args ...any) any {
	object, fallback := args[len(args)-1], args[len(args)-2]
	for _, name := range args[:len(args)-2] {
		fields, _ := object.(map[string]any)
		if object = fields[fmt.Sprint(name)]; object == nil {
			return fallback
		}
	}
	return object
}
