package main

import (
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
)

// written heads each file.
const written = "# Written by `go run ./deploy/crds` from the code: change the code, not the file.\n"

// object is an object of YAML.
type object = map[string]any

// definitions returns the files by name. root is the root of the repository.
func definitions(root string) (map[string][]byte, error) {
	describe, err := descriptions(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, k := range kubernetes.Kinds() {
		text, err := yaml.Marshal(definition(&k, describe))
		if err != nil {
			return nil, err
		}
		files[k.Group+"_"+k.Plural+".yaml"] = append([]byte(written), text...)
	}
	for name, list := range map[string][]object{"roles.yaml": roles(), "admission.yaml": admission()} {
		var all []byte
		for i, one := range list {
			text, err := yaml.Marshal(one)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				all = append(all, "---\n"...)
			}
			all = append(all, text...)
		}
		files[name] = append([]byte(written), all...)
	}
	return files, nil
}

// partOf returns the labels of all objects here, with more.
func partOf(more object) object {
	labels := object{"app.kubernetes.io/part-of": "causeway"}
	maps.Copy(labels, more)
	return labels
}

func definition(k *kubernetes.Kind, describe func(string) string) object {
	d, _ := resources.Lookup(k.Type)
	scope := "Namespaced"
	if !k.Namespaced {
		scope = "Cluster"
	}
	names := object{
		"kind": k.Name, "listKind": k.Name + "List", "plural": k.Plural, "singular": strings.ToLower(k.Name),
		"categories": categories(d),
	}
	if short := shortNames(d); len(short) > 0 {
		names["shortNames"] = short
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": object{
			"name":   k.Plural + "." + k.Group,
			"labels": partOf(nil),
			"annotations": object{
				"helm.sh/resource-policy":   "keep", // with a definition all of its objects would go
				kubernetes.AnnotationSchema: kubernetes.Schema(k.Type),
			},
		},
		"spec": object{
			"group": k.Group, "scope": scope, "names": names,
			"versions": []any{object{
				"name": k.Version, "served": true, "storage": true,
				"schema":                   object{"openAPIV3Schema": root(d, describe)},
				"additionalPrinterColumns": columns(d),
				"subresources":             object{"status": object{}},
			}},
		},
	}
}

// categories name sets of types for kubectl: `kubectl get kuma` lists everything, `kubectl get kuma-policies` policies.
func categories(d *resources.Descriptor) []string {
	if d.Policy != nil {
		return []string{"kuma", "kuma-policies"}
	}
	return []string{"kuma"}
}

// shortNames returns the short name in KRIs, and others that people know.
func shortNames(d *resources.Descriptor) []string {
	switch {
	case d.Type == resources.TypeDataplane:
		return []string{d.Short, "dpp"}
	case d.Short == "":
		return nil
	}
	return []string{d.Short}
}

// root returns the schema of a whole object.
func root(d *resources.Descriptor, describe func(string) string) object {
	spec := resources.OpenAPI(d.Type, describe)
	if spec["description"] == nil {
		spec["description"] = describe(string(d.Type))
	}
	if rules := specRules(d); len(rules) > 0 {
		spec["x-kubernetes-validations"] = rules
	}
	fields := object{
		"apiVersion": object{"type": "string", "description": "The group and the version: " + d.APIVersion() + "."},
		"kind":       object{"type": "string", "description": "The type: " + string(d.Type) + "."},
		"metadata":   metadata(d),
		"spec":       spec,
		"status":     status(d),
	}
	if d.Codec == resources.Protobuf && d.Scope == resources.ScopeMesh {
		fields["mesh"] = object{"type": "string",
			"description": "The mesh, in place of the label kuma.io/mesh. Without either, it is default."}
	}
	return object{
		"type": "object", "description": summary(d, describe), "properties": fields,
		"x-kubernetes-preserve-unknown-fields": true,
	}
}

// summary describes the type, and where its objects belong.
func summary(d *resources.Descriptor, describe func(string) string) string {
	text := policySummaries[d.Type]
	if text == "" {
		text = describe(string(d.Type))
	}
	if d.Scope == resources.ScopeMesh {
		text += " The label kuma.io/mesh names its mesh; without it, that is default."
	}
	return strings.TrimSpace(text)
}

// metadata limits names of meshes and zones, which are parts of other names.
func metadata(d *resources.Descriptor) object {
	if d.Type != resources.TypeMesh && d.Type != resources.TypeZone {
		return object{"type": "object"}
	}
	return object{"type": "object", "properties": object{"name": object{
		"type": "string", "maxLength": resources.MaxShortNameBytes, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
	}}}
}

// status returns the schema of the status, which only servers write.
func status(d *resources.Descriptor) object {
	condition := object{
		"type": "object", "required": []string{"type", "status"},
		"properties": object{
			"type": object{"type": "string", "maxLength": 316,
				"description": "The subject: Accepted, ResolvedRefs, Programmed and others."},
			"status":  object{"type": "string", "enum": []string{"True", "False", "Unknown"}},
			"reason":  object{"type": "string", "description": "One word, for programs."},
			"message": object{"type": "string", "description": "A text for people."},
			"observedGeneration": object{"type": "integer", "format": "int64",
				"description": "The metadata.generation that the condition is about."},
			"lastTransitionTime": object{"type": "string", "format": "date-time",
				"description": "When status last changed."},
		},
	}
	out := object{
		"type": "object", "description": "What servers know about the object. Servers write it.",
		"x-kubernetes-preserve-unknown-fields": true,
		"properties": object{
			"observedGeneration": object{"type": "integer", "format": "int64",
				"description": "The metadata.generation that the status is about; -1 before there is any."},
			"conditions": object{
				"type": "array", "items": condition,
				"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"type"},
				"description": "Statements about the object: whether it is valid (Accepted), whether what it refers to exists " +
					"(ResolvedRefs), whether zones and proxies have it (Programmed), and for programs that wait for objects of any " +
					"kind, whether it is done (Ready) or cannot be without a change (Stalled).",
			},
		},
	}
	if !d.Type.Live() {
		// Programs that wait for objects take a new one without a status for done.
		out["default"] = object{"observedGeneration": -1}
	}
	return out
}

// specRules returns rules over several fields of a spec, in CEL. It includes only rules whose cost does not grow with
// the spec.
func specRules(d *resources.Descriptor) []any {
	if d.Policy == nil {
		return nil
	}
	var rules []any
	together := func(field, other, message string) {
		rules = append(rules, object{
			"rule":    fmt.Sprintf("!(%s && %s)", present(field), present(other)),
			"message": message, "fieldPath": "." + field,
		})
	}
	p := d.Policy
	switch {
	case p.Rules && p.From:
		together("from", "rules", "cannot be combined with rules: use one of them")
		together("default", "from", "stands for one item of rules and cannot be combined with from: use one of them")
		fallthrough
	case p.Rules:
		together("default", "rules", "stands for one item of rules and cannot be combined with rules: use one of them")
	}
	if p.Rules && p.To {
		together("to", "rules", "cannot be combined with rules: make two policies")
		together("default", "to", "stands for one item of rules and cannot be combined with to: use one of them")
	}
	return rules
}

func present(field string) string {
	if field == "default" {
		return "has(self.default)"
	}
	return fmt.Sprintf("has(self.%s) && self.%s.size() > 0", field, field)
}
