package kubernetes

import (
	"strings"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// group and version are those of the objects.
const (
	group   = "kuma.io"
	version = "v1alpha1"
)

// Kind is a type of resource that users see as objects.
type Kind struct {
	apiserver.Kind
	Type resources.Type
}

// Kinds returns the kinds in order of dependency, like resources.Descriptors. It excludes roles and bindings, because
// Kubernetes decides who may write and the server who may read the HTTP API, and types of other groups.
func Kinds() []Kind {
	var out []Kind
	for _, d := range resources.Descriptors() {
		switch d.Type {
		case resources.TypeAccessRole, resources.TypeAccessRoleBinding, resources.TypeHTTPRouteGroup,
			resources.TypeTCPRoute, resources.TypeTrafficTarget:
			continue
		}
		out = append(out, Kind{Type: d.Type, Kind: apiserver.Kind{Group: group, Version: version, Plural: strings.ReplaceAll(d.Path, "-", ""),
			Name: string(d.Type), Namespaced: !clusterScoped(d.Type)}})
	}
	return out
}

// clusterScoped reports whether objects of a type belong to no namespace. Source: Kuma's CustomResourceDefinitions.
func clusterScoped(t resources.Type) bool {
	switch t {
	case resources.TypeMesh, resources.TypeZone, resources.TypeZoneInsight, resources.TypeMeshGateway:
		return true
	}
	return false
}

// kindOf returns the kind of a type.
func kindOf(t resources.Type) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Type == t {
			return k, true
		}
	}
	return Kind{}, false
}

// HasKind reports whether users see resources of a type as objects.
func HasKind(t resources.Type) bool {
	_, ok := kindOf(t)
	return ok
}

// definitions is the kind of CustomResourceDefinitions.
var definitions = apiserver.Kind{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions",
	Name: "CustomResourceDefinition"}

// Fed reports whether users write resources of a type as objects. They create zones with their join strings instead.
func Fed(t resources.Type) bool { return HasKind(t) && t != resources.TypeZone && !t.Live() }
