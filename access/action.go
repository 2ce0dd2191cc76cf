package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Action is what somebody wants to do with one thing.
type Action struct {
	// Verb is one of resources.AccessVerbs.
	Verb string
	// Type is a type of the registry, or one of resources.AccessThings.
	Type string
	// Mesh, Namespace and Name are empty where the thing has none.
	Mesh, Namespace, Name string
}

// On is the action of a verb on the resource under key.
func On(verb string, key resources.Key) Action {
	a := Action{Verb: verb, Type: string(key.Type), Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name}
	if key.Type == resources.TypeMesh { // who may see a mesh may see the Mesh
		a.Mesh = key.Name
	}
	return a
}

// String is how people read the permission that the action needs: `update MeshTimeout "slow" in mesh default, namespace payments`.
func (a Action) String() string {
	if a.Verb == resources.AccessAny {
		return "everything (the role " + resources.RoleAdmin + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", a.Verb, a.Type)
	if a.Name != "" {
		fmt.Fprintf(&b, " %q", a.Name)
	}
	var in []string
	if a.Mesh != "" {
		in = append(in, "mesh "+a.Mesh)
	}
	if a.Namespace != "" {
		in = append(in, "namespace "+a.Namespace)
	}
	if len(in) > 0 {
		b.WriteString(" in " + strings.Join(in, ", "))
	}
	return b.String()
}

// Assignments are the identities that a change of a Dataplane newly gives it, each as the action that it needs. Labels of a
// Dataplane decide whom it can pretend to be, and so does its name, where no label says anything else. by are the labels that the
// MeshIdentities of the mesh look at (resources.IdentityLabels): each is assigned as the workload `<label>=<value>`.
// Source: seed 003, "TrafficTarget": who assigns a service account decides who receives its traffic.
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

// identities are what a Dataplane's labels and name claim. A workload belongs to no namespace: whoever may assign it has to
// be allowed to for all of the mesh.
func identities(dp *resources.Resource, by map[string]bool) []Action {
	var out []Action
	namespace, account, workload := dp.HomeNamespace(), dp.Labels[resources.LabelServiceAccount], dp.Labels[resources.LabelWorkload]
	if account != "" {
		out = append(out, Action{Verb: resources.VerbAssign, Type: resources.AccessServiceAccount, Mesh: dp.Mesh, Namespace: namespace, Name: account})
	}
	if workload == "" && (namespace == "" || account == "" || by[resources.LabelWorkload]) {
		workload = dp.DisplayName()
	}
	if workload != "" {
		out = append(out, Action{Verb: resources.VerbAssign, Type: resources.AccessWorkload, Mesh: dp.Mesh, Name: workload})
	}
	for _, label := range slices.Sorted(maps.Keys(by)) {
		if value, there := dp.Labels[label]; there && label != resources.LabelServiceAccount && label != resources.LabelWorkload {
			out = append(out, Action{Verb: resources.VerbAssign, Type: resources.AccessWorkload, Mesh: dp.Mesh, Name: label + "=" + value})
		}
	}
	return out
}
