package kubernetes

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// LabelCopy marks an object that a server made from a resource of another author. Users cannot change it.
const LabelCopy = "causeway.io/copy"

const copied = "true"

// annotationContent is a hash of a copy's content.
const annotationContent = "causeway.io/content"

// labelled returns the error for an object with a copy's label that is not a copy.
func labelled(o *apiserver.Object) error {
	if _, ok := o.Meta.Labels[LabelCopy]; !ok {
		return nil
	}
	return api.BadField(fmt.Sprintf("metadata.labels[%q]", LabelCopy), "is set by the server: omit it")
}

// shownLabels returns the labels that a copy takes from its original. Its author may belong to another zone, and labels
// in the domain of another program would be instructions to that program in this cluster: to prune the object, or to
// adopt it.
func shownLabels(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		domain, _, prefixed := strings.Cut(key, "/")
		ours := prefixed && (domain == group || strings.HasSuffix(domain, "."+group))
		if resources.IsLabel(key, "") && (ours || !prefixed && resources.IsLabel(key, value)) {
			out[key] = value
		}
	}
	return out
}

// decoded returns the resource in a user's object. Errors are those of package resources: with the field and the
// reason.
func decoded(raw []byte, home resources.Home) (*resources.Resource, error) {
	docs, err := resources.DecodeDocuments(raw, resources.DecodeOptions{Format: resources.FormatJSON})
	var invalid *resources.DocumentsError
	if errors.As(err, &invalid) {
		for _, one := range invalid.Invalid {
			one.Document = 0
			for i := range one.Problems {
				one.Problems[i].Line = 0 // lines of the API server's JSON, which no user has seen
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, api.BadField("document", "want one object, got %d", len(docs))
	}
	doc := docs[0]
	home.Place(doc)
	return doc, unasked(doc, home)
}

// unasked returns the error for a policy that needs another right besides writing, which Kubernetes is not asked for:
// an editor of a namespace must not let a patch open what permissions close. In the system namespace only operators
// write.
func unasked(doc *resources.Resource, home resources.Home) error {
	if !resources.Unguarded(doc) || home.IsOperators(doc.Namespace) {
		return nil
	}
	return api.BadField(fmt.Sprintf("metadata.labels[%q]", resources.LabelUnguarded),
		"needs the right unguard, and Kubernetes decides only who may write in %s: write the policy in %s, or leave the label out",
		doc.Namespace, systemNamespace(home))
}

func systemNamespace(home resources.Home) string {
	if home.SystemNamespace == "" {
		return resources.DefaultSystemNamespace
	}
	return home.SystemNamespace
}

// withoutStale returns doc without computed labels that an earlier version of the object already had: the server added
// them, and recomputes them.
func withoutStale(doc *resources.Resource, before map[string]string, home resources.Home) *resources.Resource {
	out := doc
	for key, want := range computed(doc, home) {
		have, ok := out.Labels[key]
		if !ok || have == want || before[key] != have || key == resources.LabelMesh {
			continue
		}
		if out == doc {
			out = doc.Clone()
		}
		out.Labels[key] = want
	}
	return out
}

func computed(doc *resources.Resource, home resources.Home) map[string]string {
	labels := maps.Clone(home.ComputedLabels(doc))
	return labels
}
