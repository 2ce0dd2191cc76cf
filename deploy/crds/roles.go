package main

import (
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes"
)

// roles are ClusterRoles that Kubernetes adds to its own of the same names, so that whoever may edit a namespace may
// write policies there. Types without a namespace are for administrators of the cluster; everybody who may view sees
// them.
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
	read, write := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "patch", "update"}
	return []object{
		role("causeway-view", object{"view": "true"}, all, read),
		role("causeway-edit", object{"edit": "true"}, written, write),
		role("causeway-admin", object{"admin": "true"}, written, write),
	}
}

func role(name string, aggregate object, plurals, verbs []string) object {
	labels := object{}
	for to, yes := range aggregate {
		labels["rbac.authorization.k8s.io/aggregate-to-"+to] = yes
	}
	return object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": object{"name": name, "labels": partOf(labels)},
		"rules":    []any{object{"apiGroups": []string{"kuma.io"}, "resources": plurals, "verbs": verbs}},
	}
}
