package main

import (
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
)

// roles returns ClusterRoles that Kubernetes adds to its own of the same names, so that users who may edit a namespace
// may write policies there. Types without a namespace are for administrators of the cluster; every viewer sees them.
func roles() []object {
	var all, written []string
	for _, k := range kubernetes.Kinds() {
		all = append(all, k.Plural)
		if k.Namespaced && !k.Type.Live() {
			written = append(written, k.Plural)
		}
	}
	slices.Sort(all)
	slices.Sort(written)
	assign := []string{resources.VerbAssign}
	read, write := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "patch", "update"}
	// Whoever edits a namespace can run anything there as any of its service accounts, and may give them to Dataplanes.
	accounts := rule("", []string{"serviceaccounts"}, assign)
	return []object{
		role("causeway-view", object{"view": "true"}, rule("kuma.io", all, read)),
		role("causeway-edit", object{"edit": "true"}, rule("kuma.io", written, write), accounts),
		role("causeway-admin", object{"admin": "true"}, rule("kuma.io", written, write), accounts),
		// Workloads belong to no namespace. An administrator of the cluster decides to whom to bind this role.
		role("causeway-assign", nil, rule("kuma.io", []string{kubernetes.Workloads}, assign), accounts),
	}
}

func rule(group string, plurals, verbs []string) object {
	return object{"apiGroups": []string{group}, "resources": plurals, "verbs": verbs}
}

func role(name string, aggregate object, rules ...any) object {
	labels := object{}
	for to, yes := range aggregate {
		labels["rbac.authorization.k8s.io/aggregate-to-"+to] = yes
	}
	return object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": object{"name": name, "labels": partOf(labels)},
		"rules":    rules,
	}
}
