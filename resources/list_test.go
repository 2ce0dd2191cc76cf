package resources_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestListsOfKubernetes reads what kubectl get -o yaml prints of several objects, beside other documents.
func TestListsOfKubernetes(t *testing.T) {
	const list = `
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: kuma.io/v1alpha1, kind: Mesh, metadata: {name: default, finalizers: [x]}, spec: {}}
- apiVersion: kuma.io/v1alpha1
  kind: HostnameGenerator
  metadata: {name: by-zone, namespace: kuma-system, labels: {k8s.kuma.io/namespace: kuma-system, kuma.io/mesh: "", kuma.io/env: kubernetes}}
  spec: {selector: {meshService: {matchLabels: {a: b}}}, template: "{{ .DisplayName }}.mesh"}
---
type: Mesh
name: other
---
{apiVersion: v1, kind: List, items: []}
`
	docs, err := resources.DecodeDocuments([]byte(list), resources.DecodeOptions{})
	if err != nil || len(docs) != 3 || docs[0].Name != "default" || docs[1].Name != "by-zone" || docs[2].Name != "other" {
		t.Fatalf("it is read as %v, %v", docs, err)
	}
	aloneHome.Place(docs[1])
	for _, doc := range docs {
		if err := resources.Validate(doc, aloneHome); err != nil {
			t.Errorf("%s: %v", doc.Key, err)
		}
	}
	elsewhere := docs[1].Clone()
	elsewhere.Namespace = "team"
	if aloneHome.Place(elsewhere); elsewhere.Namespace != "team" {
		t.Error("the namespace of a team is taken for the system's")
	}
}

// TestListsOfKubernetesAreBounded reads lists that are not valid: one with a broken item names it, and lists hold no more
// than bodies do.
func TestListsOfKubernetesAreBounded(t *testing.T) {
	item := `{"apiVersion": "kuma.io/v1alpha1", "kind": "Mesh", "metadata": {"name": %q}}`
	list := func(items ...string) string {
		return `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(items, ",") + `]}`
	}
	for want, text := range map[string]string{
		"document 2 (Mesh) is not valid: metadata.name: is required": list(fmt.Sprintf(item, "a"), `{"apiVersion": "kuma.io/v1alpha1", "kind": "Mesh"}`),
		`unknown resource type "List"`:                               list(list()),
		`kind: unknown resource type "ConfigMap"`:                    list(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`),
		"items: unknown field":                                       `{"apiVersion": "v1", "kind": "List", "items": {}}`,
		"want an object with type, name and spec, got":               list("1"),
		"more than 1000 documents":                                   list(slicesOf(600, item)...) + list(slicesOf(600, item)...),
	} {
		_, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// slicesOf returns n items with names of their own.
func slicesOf(n int, item string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(item, fmt.Sprint("m", i))
	}
	return out
}
