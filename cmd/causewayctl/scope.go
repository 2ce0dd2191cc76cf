package main

import (
	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
)

const defaultMesh = "default"

// scopeFlags say which mesh and namespace a command means.
type scopeFlags struct {
	mesh, namespace string
}

func (s *scopeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.mesh, "mesh", "m", defaultMesh, "`mesh` of the resource")
	f.StringVarP(&s.namespace, "namespace", "n", "", "`namespace` of the resource; empty means one without a namespace")
}

// key names one resource; types of global scope have no mesh.
func (s *scopeFlags) key(d *resources.Descriptor, name string) resources.Key {
	k := resources.Key{Type: d.Type, Namespace: s.namespace, Name: name}
	if d.Scope == resources.ScopeMesh {
		k.Mesh = s.mesh
	}
	return k
}

// query lists what the flags select.
func (s *scopeFlags) query(d *resources.Descriptor) listQuery {
	return listQuery{descriptor: d, mesh: s.mesh, namespace: s.namespace}
}
