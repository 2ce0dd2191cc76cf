package resources

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxStoredBytes bounds the parts of a key. Names of secrets are composed of several.
const maxStoredBytes = 4 * MaxNameBytes

// CheckStored returns the reason why no server stores a resource with its names and labels, as an *InvalidError, or
// nil. It applies the rules on form for the writes of users and peers to backups and files. It does not check the spec.
func CheckStored(r *Resource) error {
	v := &validation{resource: r, peer: true}
	v.printable()
	if _, known := Lookup(r.Type); !known || len(v.problems) > 0 {
		return v.result()
	}
	v.name()
	v.claims()
	v.owners()
	return v.result()
}

// printable checks that names and labels are short text without control characters and spaces.
func (v *validation) printable() {
	r := v.resource
	for field, value := range map[string]string{"mesh": r.Mesh, "namespace": r.Namespace, "name": r.Name} {
		if len(value) > maxStoredBytes || !isPlain(value) {
			v.fail(top(field), "%q is not a name", shorten(value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		value := r.Labels[key]
		if !isPlain(key) {
			v.fail(top("labels"), "%q is not a label key", shorten(key))
		}
		if !isText(value) || key != LabelReferences && !isPlain(value) {
			v.fail(labelPath(key), "%q is not a label value", shorten(value))
		}
	}
}

// owners checks the labels that name the owner of the resource.
func (v *validation) owners() {
	labels := v.resource.Labels
	if zone := labels[LabelZone]; zone != "" {
		v.label(labelPath(LabelZone), zone)
	}
	if origin, labelled := labels[LabelOrigin]; labelled && origin != OriginGlobal && origin != OriginZone {
		v.fail(labelPath(LabelOrigin), "want %q or %q, got %q", OriginGlobal, OriginZone, shorten(origin))
	}
}

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

func isPlain(s string) bool { return isText(s) && !strings.ContainsRune(s, ' ') }
