package resources

import (
	"bytes"
	"fmt"
)

// KeepShown returns r with each shown hash of a secret replaced by the corresponding secret of old, the stored
// resource. A document that was read, edited and applied thus keeps the secrets that it does not change. KeepShown
// fails with an *InvalidError that names the fields whose hash matches no secret of old.
func KeepShown(r, old *Resource) (*Resource, error) {
	if !bytes.Contains(r.Spec.JSON(), []byte(shownMark)) {
		return r, nil
	}
	var there map[string]string
	var problems []FieldProblem
	spec, err := EditSecrets(r, func(path, value string) (string, error) {
		if !IsShown(value) {
			return value, nil
		}
		if there == nil {
			there = shownIn(old)
		}
		if kept := there[value]; kept != "" {
			return kept, nil
		}
		problems = append(problems, FieldProblem{Field: specField(r, path),
			Reason: "is the hash of a secret that this resource does not have here: give the secret itself"})
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &InvalidError{Key: r.Key, Problems: problems}
	}
	return r.WithSpec(spec), nil
}

// shownIn maps the shown form of each sealed or hidden value of r to the value.
func shownIn(r *Resource) map[string]string {
	out := map[string]string{}
	if r == nil {
		return out
	}
	_, _ = EditSecrets(r, func(_, value string) (string, error) { // a spec that does not decode has no secrets
		if IsHidden(value) {
			out[ShownText(value)] = value
		}
		return value, nil
	})
	return out
}

// specField returns the path of a field of the spec as users write it.
func specField(r *Resource, path string) string {
	if r.Descriptor().Codec == Protobuf {
		return path
	}
	return top("spec").String() + "." + path
}

// inlineWarnings warns of secrets that are in the resource instead of being referred to by name or file.
func inlineWarnings(r *Resource) []string {
	if r.Type != TypeMeshExternalService && r.Type != TypeMeshGateway {
		return nil
	}
	var out []string
	_, _ = EditSecrets(r, func(path, value string) (string, error) {
		out = append(out, fmt.Sprintf("%s: a secret in the resource goes wherever the resource goes: it is sealed at rest and shown as a hash, but secret: NAME (causewayctl secret set) or file keeps it in the zone that uses it", specField(r, path)))
		return value, nil
	})
	return out
}
