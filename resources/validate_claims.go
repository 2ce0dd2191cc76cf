package resources

import (
	"maps"
	"slices"
)

// maxPeerLabelBytes bounds a label in a reserved name space that a peer computes and that nothing here reads.
const maxPeerLabelBytes = 2048

// claims checks the labels that a peer sends. They identify the owner of the resource and become parts of names, KRIs,
// server names and SPIFFE IDs, so each must have the form that a user's label would have.
func (v *validation) claims() {
	r := v.resource
	if len(r.Labels) > MaxLabels {
		v.fail(top("labels"), "has %d labels, more than %d", len(r.Labels), MaxLabels)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		value, at := r.Labels[key], labelPath(key)
		switch {
		case key == LabelNamespace:
			if value != "" {
				v.label(at, value)
			}
		case key == LabelDisplayName:
			v.displayName(at, value)
		case r.Type == TypeDataplane && (key == LabelWorkload || key == LabelServiceAccount):
			if !isSubdomain(value) {
				v.fail(at, "%q is not a name: want %s", shorten(value), wantSubdomain)
			}
		case isReserved(key) || key == LabelReferences:
			if key != LabelReferences && len(value) > maxPeerLabelBytes {
				v.fail(at, "is %d bytes long, more than %d", len(value), maxPeerLabelBytes)
			}
		default:
			v.labelSyntax(at, key, value)
		}
	}
}

// displayName checks the name at home. In meshes of existing control planes it may contain underscores.
func (v *validation) displayName(at *fieldPath, value string) {
	if v.resource.Type == TypeMesh {
		if len(value) > MaxShortNameBytes || !peerMesh.MatchString(value) {
			v.fail(at, "%q is not the name of a mesh", shorten(value))
		}
		return
	}
	if !isSubdomain(value) {
		v.fail(at, "%q is not a name: want %s", shorten(value), wantSubdomain)
	}
}
