package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// EditReferences calls edit for each reference in `to` that names a resource, and returns the edited spec. at is the
// place of the reference, such as `to[0].targetRef`. ref holds its fields, which edit may change.
func EditReferences(r *Resource, edit func(at string, ref map[string]any)) (*Spec, error) {
	dec := json.NewDecoder(bytes.NewReader(r.Spec.JSON()))
	dec.UseNumber()
	var policy map[string]any
	if err := dec.Decode(&policy); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	EachObject(policy["to"], "to", func(at string, to map[string]any) {
		if ref, ok := to["targetRef"].(map[string]any); ok && realReference(ref, false) {
			edit(at+".targetRef", ref)
		}
		EachObject(to["rules"], at+".rules", func(at string, rule map[string]any) {
			conf, ok := rule["default"].(map[string]any)
			if !ok {
				return
			}
			eachBackend(conf, at+".default", edit)
		})
	})
	raw, err := json.Marshal(policy)
	if err != nil {
		return nil, err
	}
	return NewSpec(r.Type, raw)
}

// eachBackend visits the backends of a route's rule, including the backends of mirrored requests.
func eachBackend(conf map[string]any, at string, edit func(string, map[string]any)) {
	EachObject(conf["backendRefs"], at+".backendRefs", func(at string, ref map[string]any) {
		if realReference(ref, true) {
			edit(at, ref)
		}
	})
	EachObject(conf["filters"], at+".filters", func(at string, filter map[string]any) {
		mirror, ok := filter["requestMirror"].(map[string]any)
		if !ok {
			return
		}
		if ref, ok := mirror["backendRef"].(map[string]any); ok && realReference(ref, true) {
			edit(at+".requestMirror.backendRef", ref)
		}
	})
}

// EachObject calls visit for each object in a list, with its place.
func EachObject(v any, at string, visit func(at string, o map[string]any)) {
	items, _ := v.([]any)
	for i, item := range items {
		if o, ok := item.(map[string]any); ok {
			visit(fmt.Sprintf("%s[%d]", at, i), o)
		}
	}
}

// realReference reports whether ref names a resource, rather than labels, tags or a legacy service. Names of legacy
// services contain underscores, and as backends they have no port, section or namespace, as in Kuma's KDS.
func realReference(ref map[string]any, backend bool) bool {
	name := text(ref["name"])
	if name == "" || ref["labels"] != nil || strings.Contains(name, "_") {
		return false
	}
	switch text(ref["kind"]) {
	case KindMeshService:
		return !backend || ref["port"] != nil || text(ref["sectionName"]) != "" || text(ref["namespace"]) != ""
	case KindMeshExternalService, KindMeshMultiZoneService,
		KindMeshHTTPRoute, KindMeshTCPRoute:
		return true
	}
	return false
}

// AsWritten returns a policy with its references as its author wrote them, and without the label that preserves them.
// If no reference was rewritten, it returns r itself.
func AsWritten(r *Resource) (*Resource, error) {
	written, err := WrittenReferences(r)
	if err != nil || written == nil {
		return r, err
	}
	spec, err := EditReferences(r, func(at string, ref map[string]any) {
		if w, resolved := written[at]; resolved {
			ref["name"] = w.Name
			SetNamespace(ref, w.Namespace)
		}
	})
	if err != nil {
		return nil, err
	}
	r = r.Clone()
	r.Spec = spec
	delete(r.Labels, LabelReferences)
	return r, nil
}

// SetNamespace sets the namespace of a reference, or removes it if namespace is empty.
func SetNamespace(ref map[string]any, namespace string) {
	if namespace == "" {
		delete(ref, "namespace")
		return
	}
	ref["namespace"] = namespace
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
