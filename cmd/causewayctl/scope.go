package main

import (
	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
)

const defaultMesh = "default"

// scopeFlags select the mesh and namespace of a command.
type scopeFlags struct {
	mesh, namespace string
}

func (s *scopeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.mesh, "mesh", "m", defaultMesh, "`mesh` of the resource")
	f.StringVarP(&s.namespace, "namespace", "n", "", "`namespace` of the resource; empty means one without a namespace")
}

// key returns the key of one resource. Types of global scope have no mesh.
func (s *scopeFlags) key(d *resources.Descriptor, name string) resources.Key {
	k := resources.Key{Type: d.Type, Namespace: s.namespace, Name: name}
	if d.Scope == resources.ScopeMesh {
		k.Mesh = s.mesh
	}
	return k
}

// query selects the resources that the flags name.
func (s *scopeFlags) query(d *resources.Descriptor) listQuery {
	return listQuery{descriptor: d, mesh: s.mesh, namespace: s.namespace}
}
