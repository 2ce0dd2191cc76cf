package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// hostile is a value that ends its line, its list and its object in YAML, unless it is quoted.
const hostile = "a: b # c \"d\" 'e', f]}\n- g: {h}\n---\ni: j\\"

// TestRenderKeepsValuesInTheirPlace sets each text of the charts to a hostile one. The output keeps its shape, and the
// text is only a value in it.
func TestRenderKeepsValuesInTheirPlace(t *testing.T) {
	for _, chart := range []string{"causeway-global", "causeway-zone"} {
		plain := everything(t, chart)
		want := shapeOf(t, chart, plain)
		for _, at := range texts(plain, "") {
			values := everything(t, chart)
			if err := Set(values, at+"="+hostile); err != nil {
				t.Fatal(err)
			}
			if got := shapeOf(t, chart, values); !slices.Equal(got, want) {
				t.Errorf("%s: %s leaves its place: %s", chart, at, difference(got, want))
			}
		}
	}
}

// TestRenderKeepsNames renders releases and namespaces with names that YAML reads as something else, unless they are quoted.
func TestRenderKeepsNames(t *testing.T) {
	for _, chart := range []string{"causeway-global", "causeway-zone"} {
		values := everything(t, chart)
		want := shapeOf(t, chart, values)
		for name, namespace := range map[string]string{"n": "prod", "prod": "no", "7": "1e3", "null": "on"} {
			got := shapeOfRelease(t, &Release{Chart: chart, Name: name, Namespace: namespace, Values: values})
			if !slices.Equal(got, want) {
				t.Errorf("%s: as %s in %s: %s", chart, name, namespace, difference(got, want))
			}
		}
	}
}

// everything returns the values of a chart with all features enabled and all texts set.
func everything(t *testing.T, chart string) map[string]any {
	t.Helper()
	values, err := Values(chart)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"store.kind=etcd", "store.etcd.endpoints={http://a,http://b}", "serviceMonitor.enabled=true",
		"kubernetes.enabled=true", "extraArgs={--a,--b}", "tls.names={a.example}"}
	if chart == "causeway-zone" {
		all = append(all, "injection.enabled=true", "injection.cni.enabled=true")
	}
	for _, setting := range all {
		if err := Set(values, setting); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range texts(values, "") {
		if err := Set(values, at+"="+placeOf(at)); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// placeOf returns a plain value: the store stays etcd, so that all of it is rendered.
func placeOf(at string) string {
	if at == "store.kind" {
		return "etcd"
	}
	return "plain"
}

// texts returns the paths of all texts except the kind of the store, which decides what is rendered.
func texts(values map[string]any, at string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch v := values[name].(type) {
		case string:
			if at+name != "store.kind" {
				out = append(out, at+name)
			}
		case map[string]any:
			out = append(out, texts(v, at+name+".")...)
		}
	}
	return out
}

// shapeOf lists all paths in the output of a release r, with the kinds of their values.
func shapeOf(t *testing.T, chart string, values map[string]any) []string {
	t.Helper()
	return shapeOfRelease(t, &Release{Chart: chart, Name: "r", Namespace: "s", Values: values})
}

func shapeOfRelease(t *testing.T, r *Release) []string {
	t.Helper()
	raw, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, document := range strings.Split(string(raw), "\n---\n") {
		var read any
		if err := yaml.UnmarshalStrict([]byte(document), &read); err != nil {
			return append(out, fmt.Sprintf("document %d: %v", i, err))
		}
		out = append(out, places(read, fmt.Sprint(i))...)
	}
	return out
}

func places(v any, at string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, places(v[name], at+"."+name)...)
		}
	case []any:
		for i, one := range v {
			out = append(out, places(one, fmt.Sprintf("%s[%d]", at, i))...)
		}
	default:
		out = append(out, fmt.Sprintf("%s %T", at, v))
	}
	return out
}

// difference returns the first path that only one of them has.
func difference(got, want []string) string {
	for i, one := range got {
		if i >= len(want) || one != want[i] {
			return one
		}
	}
	return want[len(got)] + " is missing"
}
