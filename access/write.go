package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ForWrite returns the permissions that a write of doc in place of old needs; old is nil if there is none. The first is
// to create or update doc. Others are to change a copy that has its name, to give a Dataplane its identity, to let
// others answer for a MeshService, and to leave a patch unguarded.
func ForWrite(state store.Snapshot, old, doc *resources.Resource) []Action {
	verb := resources.VerbCreate
	if old != nil {
		verb = resources.VerbUpdate
	}
	needed := []Action{On(verb, doc.Key)}
	if old != nil && old.HomeNamespace() != doc.Namespace { // a copy: it belongs to the server that wrote it
		needed = append(needed, OnResource(verb, old))
	}
	needed = append(needed, Identities(state, old, doc)...)
	if doc.Type == resources.TypeMeshProxyPatch && resources.Unguarded(doc) {
		needed = append(needed, On(resources.VerbUnguard, doc.Key))
	}
	return needed
}

// Identities returns the identities that a write of doc in place of old newly gives to a Dataplane, or to those that
// answer for a MeshService, each as the action that it needs.
func Identities(state store.Snapshot, old, doc *resources.Resource) []Action {
	switch doc.Type {
	case resources.TypeDataplane:
		return Assignments(old, doc, identityLabels(state, doc.Mesh))
	case resources.TypeMeshService:
		return Answers(old, doc)
	}
	return nil
}

// identityLabels returns the labels by which the MeshIdentities of a mesh identify a Dataplane.
func identityLabels(state store.Snapshot, mesh string) map[string]bool {
	var list []*resources.MeshIdentity
	for r := range state.List(store.Query{Type: resources.TypeMeshIdentity, Mesh: mesh}) {
		if spec, err := resources.SpecAs[resources.MeshIdentity](r); err == nil {
			list = append(list, spec)
		}
	}
	return resources.IdentityLabels(list)
}

// Assignments returns the identities that a change newly gives a Dataplane, each as the action that it needs. The
// labels of a Dataplane decide which identities it can have. If no label applies, its name does. by holds the labels
// that the MeshIdentities of the mesh use (resources.IdentityLabels): each is assigned as the workload
// `<label>=<value>`. Source: seed 003, "TrafficTarget": who assigns a service account decides who receives its traffic.
func Assignments(old, dataplane *resources.Resource, by map[string]bool) []Action {
	had := map[Action]bool{}
	if old != nil {
		for _, a := range identities(old, by) {
			had[a] = true
		}
	}
	var out []Action
	for _, a := range identities(dataplane, by) {
		if !had[a] {
			out = append(out, a)
		}
	}
	return out
}

// Answers returns the identities that a change newly accepts for a MeshService, each as the action that it needs:
// whoever has such an identity receives its clients and everything that they send. Identities of the service's own
// namespace belong to its owner. Any other is assigned as the workload in its path, or else as the whole SPIFFE ID.
func Answers(old, service *resources.Resource) []Action {
	had := map[string]bool{}
	if old != nil {
		for _, id := range namedIdentities(old) {
			had[id] = true
		}
	}
	var out []Action
	for _, id := range namedIdentities(service) {
		parsed, err := spiffeid.FromString(id)
		if had[id] || err != nil { // an invalid SPIFFE ID matches no workload, and validation refuses it
			continue
		}
		byZone := strings.HasSuffix(parsed.TrustDomain().Name(), resources.TrustDomainSuffix) // so are the paths, and the zone is the service's
		if ns := service.HomeNamespace(); byZone && ns != "" && strings.HasPrefix(parsed.Path(), "/ns/"+ns+"/") {
			continue
		}
		workload, named := strings.CutPrefix(parsed.Path(), "/workload/")
		if !byZone || !named {
			workload = id
		}
		out = append(out, About(resources.VerbAssign, resources.AccessWorkload, service.Mesh, "", workload))
	}
	return out
}

func namedIdentities(service *resources.Resource) []string {
	spec, err := resources.SpecAs[resources.MeshService](service)
	if err != nil {
		return nil
	}
	var out []string
	for _, id := range spec.Identities {
		if id.Type == "SpiffeID" {
			out = append(out, id.Value)
		}
	}
	return out
}

// identities returns the identities that a Dataplane's labels and name claim. A workload belongs to no namespace: a
// caller needs permission for the whole mesh to assign it.
func identities(dp *resources.Resource, by map[string]bool) []Action {
	var out []Action
	namespace, account, workload := dp.HomeNamespace(), dp.Labels[resources.LabelServiceAccount],
		dp.Labels[resources.LabelWorkload]
	if account != "" {
		out = append(out, About(resources.VerbAssign, resources.AccessServiceAccount, dp.Mesh, namespace, account))
	}
	if workload == "" && (namespace == "" || account == "" || by[resources.LabelWorkload]) {
		workload = dp.DisplayName()
	}
	if workload != "" {
		out = append(out, About(resources.VerbAssign, resources.AccessWorkload, dp.Mesh, "", workload))
	}
	for _, label := range slices.Sorted(maps.Keys(by)) {
		if value, there := dp.Labels[label]; there && label != resources.LabelServiceAccount &&
			label != resources.LabelWorkload {
			out = append(out, About(resources.VerbAssign, resources.AccessWorkload, dp.Mesh, "", label+"="+value))
		}
	}
	return out
}
