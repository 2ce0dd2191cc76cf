package fsck

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// maxReadable is how many bytes of the display name the name of a copy contains.
const maxReadable = 200

// Contents checks resources like those of a data folder, for a server with this system namespace. revision is the
// store's, or zero if unknown. The second result says why one of them cannot come from a server of ours, by its names,
// labels or revision, or because it is a duplicate; or it is nil.
func Contents(all []*resources.Resource, revision uint64, systemNamespace string) ([]Finding, error) {
	r := &Report{systemNamespace: systemNamespace}
	r.contents(all, revision)
	seen := make(map[resources.Key]bool, len(all))
	for _, one := range all {
		if err := resources.CheckStored(one); err != nil {
			return r.Findings, err
		}
		if seen[one.Key] {
			return r.Findings, fmt.Errorf("%s: it appears twice", one.Key)
		}
		seen[one.Key] = true
		if revision > 0 && one.Revision > revision {
			return r.Findings, fmt.Errorf("%s: its revision is %d, and the store's is %d", one.Key, one.Revision, revision)
		}
	}
	return r.Findings, nil
}

// contents checks the resources: they are valid, keys and labels agree, names of copies match their hashes, meshes
// exist, and no revision is in the future.
func (r *Report) contents(all []*resources.Resource, revision uint64) {
	meshes := map[string]bool{}
	for _, one := range all {
		if one.Type == resources.TypeMesh {
			meshes[one.Name] = true
		}
	}
	for _, one := range all {
		if err := resources.CheckStored(one); err != nil {
			r.resource(one, "no server stores it under this name and with these labels: "+err.Error(),
				"find out who wrote it; apply it again as it should be, or delete it")
		}
		if _, known := resources.Lookup(one.Type); !known && one.Type != resources.TypeSecret {
			r.resource(one, "its type is not known to this program",
				"it was written by another version: use that one, or remove it there")
			continue
		}
		if one.Revision == 0 || revision > 0 && one.Revision > revision {
			r.resource(one, fmt.Sprintf("its revision is %d, and the store's is %d", one.Revision, revision),
				"restore a backup: zones would take an old state for a newer one")
		}
		if one.Type == resources.TypeSecret {
			continue // sealed: only a server with the key can check it
		}
		r.labels(one)
		if one.Mesh != "" && !meshes[one.Mesh] {
			r.resource(one, "its mesh "+one.Mesh+" is not there", "make the mesh again, or delete this resource")
		}
		if err := resources.ValidatePeer(one, r.systemNamespace); err != nil {
			r.resource(one, "it is not valid: "+err.Error(), "apply it again as it should be, or delete it")
		}
	}
}

func (r *Report) resource(one *resources.Resource, what, do string) {
	r.add(Finding{Severity: Warning, Where: one.Key.String(), What: what, Do: do})
}

// labels compares the labels with the key, and the name of a copy with its display name.
func (r *Report) labels(one *resources.Resource) {
	const do = "a server computes it: apply the resource again where it was written"
	if mesh, labelled := one.Labels[resources.LabelMesh]; labelled && mesh != one.Mesh {
		r.resource(one, fmt.Sprintf("the label %s says %q", resources.LabelMesh, mesh), do)
	}
	// The sender hashes the names of copies. All begin with the display name, truncated if it is long.
	display := one.Labels[resources.LabelDisplayName]
	if cut := display[:min(len(display), maxReadable)]; display != "" && display != one.Name &&
		!strings.HasPrefix(one.Name, cut+"-") {
		r.resource(one, fmt.Sprintf("it is called %q at home, from which this name does not come", display), do)
	}
}
