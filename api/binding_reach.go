package api

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// bindingWarnings warns about the roles of an AccessRoleBinding that do not exist in after, and so grant nothing. A
// reader who may not read a role is not told whether it exists.
func bindingWarnings(after store.Snapshot, r *resources.Resource, reader *Reader) []string {
	if r.Type != resources.TypeAccessRoleBinding {
		return nil
	}
	binding, err := resources.SpecAs[resources.AccessRoleBinding](r)
	if err != nil {
		return nil
	}
	var out []string
	for i, name := range binding.Roles {
		role := &resources.Resource{Key: resources.Key{Type: resources.TypeAccessRole, Name: name}}
		builtIn := name == resources.RoleAdmin || name == resources.RoleViewer
		if !builtIn && after.Get(role.Key) == nil && reader.May(role) {
			out = append(out, fmt.Sprintf("spec.roles[%d]: there is no AccessRole %q on this server, so it grants nothing until one is applied", i, name))
		}
	}
	return out
}
