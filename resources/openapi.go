package resources

import (
	"maps"
	"slices"
)

// keepUnknown marks an object whose unknown fields the Kubernetes API server keeps. Otherwise a misspelled field would
// vanish before anybody could refuse it, and a policy would say less than its author wrote.
const keepUnknown = "x-kubernetes-preserve-unknown-fields"

// OpenAPI returns the schema of a type's spec as a structural schema of Kubernetes: OpenAPI 3.0 without references.
// Whatever DecodeDocuments and Validate accept conforms to it. describe returns the description of a field by
// Field.Origin and that of a Go type or message by its name, or "". OpenAPI returns nil for a type that the registry
// does not know.
func OpenAPI(t Type, describe func(origin string) string) map[string]any {
	s := schemaOf(t)
	if s == nil {
		return nil
	}
	return forPolicy(s, byType[string(t)].Policy).openAPI("", describe)
}

// forPolicy removes the fields that no policy of the shape has from a policy's schema.
func forPolicy(s *schema, p *PolicyShape) *schema {
	if p == nil {
		return s
	}
	absent := map[string]bool{"to": !p.To, "from": !p.From, "rules": !p.Rules, "default": !p.Rules && !p.Single}
	out := without(s, absent)
	if to, ok := out.fields["to"]; ok {
		item := without(to.elem, map[string]bool{"hostnames": !p.Route, "rules": !p.Route, "default": p.Route})
		to.schema = &schema{shape: listShape, elem: item}
		out.fields["to"] = to
	}
	return out
}

func without(s *schema, absent map[string]bool) *schema {
	out := *s
	out.fields = maps.Clone(s.fields)
	maps.DeleteFunc(out.fields, func(name string, _ schemaField) bool { return absent[name] })
	return &out
}

// openAPI describes a value that decodes into the field origin.
func (s *schema) openAPI(origin string, describe func(string) string) map[string]any {
	out := s.openAPIValue(origin, describe)
	if about := describe(origin); about != "" {
		out["description"] = about
	}
	return out
}

func (s *schema) openAPIValue(origin string, describe func(string) string) map[string]any {
	switch s.shape {
	case objectShape:
		return map[string]any{"type": "object", keepUnknown: true}
	case fieldsShape:
		return s.openAPIObject(describe)
	case mapShape:
		return map[string]any{"type": "object", "additionalProperties": s.elem.openAPIValue(origin, describe)}
	case listShape:
		return map[string]any{"type": "array", "items": s.elem.openAPIValue(origin, describe)}
	case stringShape:
		return withPattern(withEnum(map[string]any{"type": "string"}, knownValues[origin]), origin)
	case enumShape:
		return withEnum(map[string]any{"type": "string"}, s.enum)
	case boolShape:
		return map[string]any{"type": "boolean"}
	case integerShape:
		return map[string]any{"type": "integer", "format": "int64", "minimum": s.min, "maximum": s.max}
	case numberShape:
		return map[string]any{"type": "number"}
	case intOrStringShape:
		return map[string]any{"x-kubernetes-int-or-string": true}
	default: // stringsShape too: a schema cannot say "a string or a list of strings" and remain structural
		return map[string]any{keepUnknown: true}
	}
}

func (s *schema) openAPIObject(describe func(string) string) map[string]any {
	fields := map[string]any{}
	for _, f := range s.fields {
		fields[f.name] = f.openAPI(f.origin, describe)
	}
	out := map[string]any{"type": "object", "properties": fields, keepUnknown: true}
	if about := describe(s.owner); about != "" {
		out["description"] = about
	}
	if need := neededFields[s.owner]; len(need) > 0 {
		out["required"] = need
	}
	if s.owner == "PermissionMatch" { // an empty entry would match everybody
		out["minProperties"] = 1
	}
	return out
}

func withPattern(value map[string]any, origin string) map[string]any {
	if origin == "SpiffeIDMatch.Value" {
		value["pattern"], value["maxLength"] = "^spiffe://", MaxSpiffeIDBytes
	}
	return value
}

func withEnum(value map[string]any, names []string) map[string]any {
	if len(names) > 0 {
		all := make([]any, len(names))
		for i, name := range slices.Sorted(slices.Values(names)) {
			all[i] = name
		}
		value["enum"] = all
	}
	return value
}

// knownValues lists the values of enumerated text fields, by Field.Origin. Validation refuses any other, from users and
// from peers.
var knownValues = map[string][]string{
	"TargetRef.Kind": {KindMesh, KindMeshSubset, KindMeshGateway, KindMeshService, KindMeshServiceSubset,
		KindMeshExternalService, KindMeshMultiZoneService, KindMeshHTTPRoute, KindMeshTCPRoute, KindDataplane},
	"TargetRef.ProxyTypes":    {"Sidecar", "Gateway"},
	"PermissionAction.Action": {ActionAllow, ActionDeny, ActionAllowWithShadowDeny},
	"SpiffeIDMatch.Type":      {MatchExact, MatchPrefix},
	"SNIMatch.Type":           {MatchExact},
	"PathMatch.Type":          {MatchExact, MatchPrefix, MatchRegularExpression},
}

// neededFields lists the fields that objects of some Go types must have. Validation refuses objects without them.
var neededFields = map[string][]string{
	"PermissionAction": {"action"},
	"SpiffeIDMatch":    {"type", "value"},
	"SNIMatch":         {"type", "value"},
	"PathMatch":        {"type", "value"},
}

// APIVersion returns the group and the version of the type's Kubernetes form.
func (d *Descriptor) APIVersion() string { return apiVersionOf(d.Type) }
