package main

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// columns returns what `kubectl get` shows beside the name.
func columns(d *resources.Descriptor) []any {
	var out []any
	add := func(name, path string) { out = append(out, column(name, path, 0)) }
	wide := func(name, path string) { out = append(out, column(name, path, 1)) }
	switch d.Type {
	case resources.TypeMeshService, resources.TypeMeshExternalService, resources.TypeMeshMultiZoneService:
		add("Hostname", ".status.addresses[0].hostname")
	case resources.TypeDataplane:
		add("Address", ".spec.networking.address")
	case resources.TypeMeshTrust:
		add("Trust Domain", ".spec.trustDomain")
	case resources.TypeHostnameGenerator:
		add("Template", ".spec.template")
	case resources.TypeZone:
		out = append(out, object{"name": "Enabled", "jsonPath": ".spec.enabled", "type": "boolean"})
	}
	if d.Policy != nil {
		add("Target", ".spec.targetRef.kind")
		wide("Target Name", ".spec.targetRef.name")
		add("Role", label(resources.LabelPolicyRole))
	}
	if d.Scope == resources.ScopeMesh {
		wide("Mesh", label(resources.LabelMesh))
	}
	if d.GlobalToZone || d.ZoneToGlobal {
		add("Origin", label(resources.LabelOrigin))
		wide("Zone", label(resources.LabelZone))
		wide("Display Name", label(resources.LabelDisplayName))
	}
	if !d.Type.Live() {
		add("Accepted", condition("Accepted"))
		add("Programmed", condition("Programmed"))
	}
	return append(out, object{"name": "Age", "jsonPath": ".metadata.creationTimestamp", "type": "date"})
}

func column(name, path string, priority int) object {
	out := object{"name": name, "jsonPath": path, "type": "string"}
	if priority > 0 {
		out["priority"] = priority // shown by -o wide only
	}
	return out
}

// label returns the path of a label's value.
func label(name string) string { return ".metadata.labels." + strings.ReplaceAll(name, ".", `\.`) }

// condition returns the path of a condition's status.
func condition(name string) string { return `.status.conditions[?(@.type=="` + name + `")].status` }
