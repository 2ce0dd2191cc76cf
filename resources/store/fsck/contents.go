package fsck

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// maxReadable is how much of a name at home stands in that of a copy, in bytes.
const maxReadable = 200

// contents checks what the resources say: that they are valid, that keys and labels agree, that names of copies are what they hash to,
// that meshes are there, and that no revision is from the future.
func (r *Report) contents(all []*resources.Resource, revision uint64) {
	meshes := map[string]bool{}
	for _, one := range all {
		if one.Type == resources.TypeMesh {
			meshes[one.Name] = true
		}
	}
	for _, one := range all {
		if _, known := resources.Lookup(one.Type); !known && one.Type != resources.TypeSecret {
			r.resource(one, "its type is not known to this program", "it was written by another version: use that one, or remove it there")
			continue
		}
		if one.Revision == 0 || revision > 0 && one.Revision > revision {
			r.resource(one, fmt.Sprintf("its revision is %d, and the store's is %d", one.Revision, revision), "restore a backup: zones would take an old state for a newer one")
		}
		if one.Type == resources.TypeSecret {
			continue // sealed: only a server with the key can tell
		}
		r.labels(one)
		if one.Mesh != "" && !meshes[one.Mesh] {
			r.resource(one, "its mesh "+one.Mesh+" is not there", "make the mesh again, or delete this resource")
		}
		if err := resources.ValidateSpec(one); err != nil {
			r.resource(one, "it is not valid: "+err.Error(), "apply it again as it should be, or delete it")
		}
	}
}

func (r *Report) resource(one *resources.Resource, what, do string) {
	r.add(Finding{Severity: Warning, Where: one.Key.String(), What: what, Do: do})
}

// labels compares labels with the key, and a copy's name with what it must hash to.
func (r *Report) labels(one *resources.Resource) {
	const do = "a server computes it: apply the resource again where it was written"
	if mesh, labelled := one.Labels[resources.LabelMesh]; labelled && mesh != one.Mesh {
		r.resource(one, fmt.Sprintf("the label %s says %q", resources.LabelMesh, mesh), do)
	}
	// Names of copies are hashed by who sends them; all begin with what they are called at home, cut where it is long.
	display := one.Labels[resources.LabelDisplayName]
	if cut := display[:min(len(display), maxReadable)]; display != "" && display != one.Name && !strings.HasPrefix(one.Name, cut+"-") {
		r.resource(one, fmt.Sprintf("it is called %q at home, from which this name does not come", display), do)
	}
}
