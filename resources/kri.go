package resources

import (
	"fmt"
	"strings"
)

// KRI identifies a resource, or a section of a resource, on all servers:
// `kri_<short>_<mesh>_<zone>_<namespace>_<name>_<section>`. Parts that do not apply are empty.
type KRI struct {
	Short, Mesh, Zone, Namespace, Name, Section string
}

const kriPrefix = "kri"

// KRIOf returns the KRI of r, which is the same on every server, even if the name is hashed. It is zero for types
// without a KRI.
func KRIOf(r *Resource) KRI {
	d := r.Descriptor()
	if d.Short == "" {
		return KRI{}
	}
	return KRI{Short: d.Short, Mesh: r.Mesh, Zone: r.Zone(), Namespace: r.HomeNamespace(), Name: r.DisplayName()}
}

// WithSection returns k with a section: the name or number of an inbound or port.
func (k KRI) WithSection(section string) KRI {
	k.Section = section
	return k
}

// IsZero reports whether k is empty.
func (k KRI) IsZero() bool { return k == KRI{} }

// String returns the KRI in text form, or "" if it is zero.
func (k KRI) String() string {
	if k.IsZero() {
		return ""
	}
	return strings.Join([]string{kriPrefix, k.Short, k.Mesh, k.Zone, k.Namespace, k.Name, k.Section}, "_")
}

// ParseKRI parses a KRI. The error names the problem and shows the form.
func ParseKRI(s string) (KRI, error) {
	parts := strings.Split(s, "_")
	if len(parts) != 7 || parts[0] != kriPrefix {
		return KRI{}, fmt.Errorf("%q is not a KRI: want kri_<type>_<mesh>_<zone>_<namespace>_<name>_<section>, with empty parts left empty", s)
	}
	k := KRI{Short: parts[1], Mesh: parts[2], Zone: parts[3], Namespace: parts[4], Name: parts[5], Section: parts[6]}
	if _, ok := LookupShort(k.Short); !ok {
		return KRI{}, fmt.Errorf("%q is not a KRI: no type has the short name %q", s, k.Short)
	}
	if k.Name == "" {
		return KRI{}, fmt.Errorf("%q is not a KRI: the name is empty", s)
	}
	return k, nil
}
