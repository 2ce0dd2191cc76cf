package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metric is one metric of the servers, read from the sources.
type metric struct {
	name, kind, help string
	labels           []string
	// servers is global, zone or both.
	servers string
}

const metricPrefix = "causeway_"

// metricFolders are the folders of the servers' sources.
var metricFolders = []string{"server", "global", "zone", "kds", "resources", "api", "access", "tokens", "secrets",
	"panics", "enrolment", "kubernetes"}

func metricsPage(root string) (string, error) {
	all, err := metricsOf(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + written + `
Both servers serve metrics in the text format of Prometheus at ` + "`/metrics`" + ` of their ` + "`--diagnostics-address`" + `. A counter, and a metric with
labels, appears with its first value. The metrics of the Go runtime and of the process (` + "`go_`, `process_`, `promhttp_`" + `) are there
too. How to watch them: [monitoring](../operations/monitoring.md).

| metric | type | labels | server | |
| --- | --- | --- | --- | --- |
`)
	for _, m := range all {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, labels, m.servers, m.help)
	}
	return b.String(), nil
}

// metricsOf reads the metrics from the sources of the servers, sorted by name.
func metricsOf(root string) ([]metric, error) {
	found := map[string]metric{}
	for _, dir := range metricFolders {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			servers := "both"
			switch dir {
			case "global", "zone":
				servers = dir
			}
			for _, m := range metricsIn(file) {
				m.servers = servers
				found[m.name] = m
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	if len(out) < 20 {
		return nil, fmt.Errorf("only %d metrics found: are they written in another way now?", len(out))
	}
	return out, nil
}

// metricsIn finds the three forms of a metric in the sources: options, a description, and a call of a local function
// that creates counters.
func metricsIn(file *ast.File) []metric {
	var out []metric
	resolve(file)
	makers := makersIn(file)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		texts := literals(call.Args)
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			if m, ok := fromOptions(call.Args); ok {
				out = append(out, m)
			} else if fun.Sel.Name == "NewDesc" && len(texts) == 2 {
				out = append(out, metric{name: texts[0], kind: kindOfConst(texts[0]), help: texts[1], labels: labelsOf(call.Args)})
			}
		case *ast.Ident:
			if maker, ok := makers[fun.Name]; ok && len(texts) >= 2 {
				out = append(out, metric{name: texts[0], kind: maker.kind, help: texts[1],
					labels: append(texts[2:], maker.labels...)})
			}
		}
		return true
	})
	out = append(out, namedOptions(file)...)
	return slices.DeleteFunc(out, func(m metric) bool { return !strings.HasPrefix(m.name, metricPrefix) })
}

// resolve replaces the names of the file's constants, where they are values of fields, by their literals.
func resolve(file *ast.File) {
	literals := map[string]*ast.BasicLit{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
					literals[name.Name] = lit
				}
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Value.(*ast.Ident); ok && literals[name.Name] != nil {
				pair.Value = literals[name.Name]
			}
		}
		return true
	})
}

// kindOfConst returns the kind of a metric that has only a description: the suffix _total marks a counter.
func kindOfConst(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// makersIn returns local functions like counter := func(name, help string) prometheus.Counter {...}.
func makersIn(file *ast.File) map[string]metric {
	makers := map[string]metric{}
	ast.Inspect(file, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Rhs) != 1 {
			return true
		}
		fun, ok := assign.Rhs[0].(*ast.FuncLit)
		if !ok {
			return true
		}
		ast.Inspect(fun, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
				if kind := kindOfOptions(call.Args[0]); kind != "" {
					makers[assign.Lhs[0].(*ast.Ident).Name] = metric{kind: kind, labels: labelsOf(call.Args)}
				}
			}
			return true
		})
		return true
	})
	return makers
}

// namedOptions returns the metrics whose options are in a variable. They have no labels.
func namedOptions(file *ast.File) []metric {
	var out []metric
	ast.Inspect(file, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok {
			if m, ok := fromOptions(assign.Rhs); ok {
				out = append(out, m)
			}
		}
		return true
	})
	return out
}

// fromOptions reads prometheus.CounterOpts{Name: "...", Help: "..."} and the labels after it.
func fromOptions(args []ast.Expr) (metric, bool) {
	kind := kindOfOptions(args[0])
	if kind == "" {
		return metric{}, false
	}
	m := metric{kind: kind, labels: labelsOf(args)}
	for _, e := range args[0].(*ast.CompositeLit).Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch pair.Key.(*ast.Ident).Name {
		case "Name":
			m.name = text(pair.Value)
		case "Help":
			m.help = text(pair.Value)
		case "ConstLabels":
			for _, l := range pair.Value.(*ast.CompositeLit).Elts {
				m.labels = append(m.labels, text(l.(*ast.KeyValueExpr).Key))
			}
		}
	}
	return m, m.name != ""
}

// kindOfOptions returns counter, gauge or histogram for a literal of that type's options, otherwise an empty string.
func kindOfOptions(e ast.Expr) string {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	t, ok := lit.Type.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(t.Sel.Name, "Opts") {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(t.Sel.Name, "Opts"))
}

// labelsOf returns the list of names among the arguments.
func labelsOf(args []ast.Expr) []string {
	for _, a := range args {
		if lit, ok := a.(*ast.CompositeLit); ok {
			if _, isList := lit.Type.(*ast.ArrayType); isList {
				return literals(lit.Elts)
			}
		}
	}
	return nil
}

func literals(exprs []ast.Expr) []string {
	var out []string
	for _, e := range exprs {
		if t := text(e); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// text returns the value of a string literal, or an empty string for any other expression.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}
