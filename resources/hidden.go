package resources

import "fmt"

// KeepShown returns r with what people see of a secret replaced by the secret that old, which is there now, has for it: so a document that was
// read, edited and applied keeps what it does not change. It fails with an *InvalidError that names the fields in which something is
// shown that old does not have.
func KeepShown(r, old *Resource) (*Resource, error) {
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
		problems = append(problems, FieldProblem{Field: top("spec").String() + "." + path, Reason: "is what is shown of a secret, and of none that this resource has here: give the secret itself"})
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

// shownIn are the sealed and hidden values of r by what people see of them.
func shownIn(r *Resource) map[string]string {
	out := map[string]string{}
	if r == nil {
		return out
	}
	_, _ = EditSecrets(r, func(_, value string) (string, error) { // what does not decode has none
		if IsHidden(value) {
			out[ShownText(value)] = value
		}
		return value, nil
	})
	return out
}

// inlineWarnings name the secrets that stand in a resource where the name of a secret, or of a file, could.
func inlineWarnings(r *Resource) []string {
	if r.Type != TypeMeshExternalService {
		return nil
	}
	var out []string
	_, _ = EditSecrets(r, func(path, value string) (string, error) {
		out = append(out, fmt.Sprintf("spec.%s: a secret in the resource goes wherever the resource goes: it is sealed at rest and shown as a hash, but secret: NAME (causewayctl secret set) or file keeps it in the zone that uses it", path))
		return value, nil
	})
	return out
}
