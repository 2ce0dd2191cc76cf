package exchange

import (
	"encoding/json"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// References of policies that leave their zone (seed 004, "Cross-resource references"). On receipt, the global gives
// each reference the name that the copy of its object has everywhere else, and keeps the original in
// resources.LabelReferences. Each server sets the namespace in which its own copies live, its system namespace, so a
// reference means the same in any policy that repeats it. References by labels are left as they are.

// Lookup returns a resource of this server's store by its name here; nil if there is none. The server's own may be in
// its system namespace; copies have none.
type Lookup func(t resources.Type, mesh, name string) *resources.Resource

// resolveReferences resolves the references of a zone's policy on the global: r's labels must be pinned already, its
// role among them.
func resolveReferences(r *resources.Resource, here *Arrival) error {
	if !hasDestinations(r) {
		return nil
	}
	written := map[string]resources.WrittenReference{}
	spec, err := resources.EditReferences(r, func(at string, ref map[string]any) {
		w := resources.WrittenReference{Name: text(ref["name"]), Namespace: text(ref["namespace"])}
		name, settled := copyName(r, resources.Type(text(ref["kind"])), w, here)
		if !settled {
			return
		}
		written[at] = w
		ref["name"] = name
		resources.SetNamespace(ref, here.OwnNamespace)
	})
	if err != nil || len(written) == 0 {
		return err
	}
	label, err := json.Marshal(written)
	if err != nil {
		return err
	}
	r.Spec, r.Labels[resources.LabelReferences] = spec, string(label)
	return nil
}

// copyName returns the name of a reference's object outside the zone of r. A reference to a copy follows its original:
// the name of a copy stays, and the name of what only the global writes is hashed without a zone. It is not settled if
// the reference may mean several namespaces and none of them has the object yet: then it stays a display name, which
// means the same here as in the zone, whatever comes later. No such policy crosses to other zones.
func copyName(r *resources.Resource, kind resources.Type, ref resources.WrittenReference, here *Arrival) (name string,
	settled bool) {
	held := here.Lookup(kind, r.Mesh, ref.Name)
	if d, ok := resources.Lookup(kind); ok && d.WrittenOn == resources.OnGlobal {
		switch {
		case isCopyOfOwn(kind, r.Mesh, ref.Name, here.Lookup):
			return ref.Name, true
		case held != nil:
			return HashedName(held), true
		}
		return hashing.Name(r.Mesh, ref.Name), true
	}
	if held != nil && held.Zone() != "" || isCopyOfOwn(kind, r.Mesh, ref.Name, here.Lookup) {
		return ref.Name, true
	}
	namespaces, open := namespacesOf(r, kind, ref, here.SystemNamespace)
	for _, namespace := range namespaces {
		copied := zoneHash(r.Mesh, ref.Name, r.Zone(), namespace)
		for _, name := range []string{copied, ApartName(r.Mesh, copied, r.Zone())} { // the name may belong to another zone
			if c := here.Lookup(kind, r.Mesh, name); c != nil && c.Zone() == r.Zone() {
				return copied, true
			}
		}
	}
	if held != nil {
		return HashedName(held), true
	}
	if open {
		return "", false
	}
	return zoneHash(r.Mesh, ref.Name, r.Zone(), namespaces[0]), true
}

// namespacesOf returns the namespaces in which a reference looks for its object, in order; open reports whether it then
// looks in all others. Without a namespace a reference means the policy's own, but a system policy's means others too,
// and a MeshExternalService is in the system namespace only. What is in the system namespace may have no namespace.
func namespacesOf(r *resources.Resource, kind resources.Type, ref resources.WrittenReference,
	system string) (namespaces []string, open bool) {
	switch {
	case ref.Namespace == system:
		return []string{system, ""}, false
	case ref.Namespace != "":
		return []string{ref.Namespace}, false
	case r.Labels[resources.LabelPolicyRole] == string(resources.RoleSystem) || kind == resources.TypeMeshExternalService:
		return []string{r.HomeNamespace(), system, ""}, true
	}
	return []string{r.HomeNamespace()}, false
}

// isCopyOfOwn reports whether name is the name in zones of a copy of one of the global's own resources.
func isCopyOfOwn(kind resources.Type, mesh, name string, lookup Lookup) bool {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return false
	}
	own := lookup(kind, mesh, name[:i])
	return own != nil && own.Zone() == "" && HashedName(own) == name
}

// settleReferences sets the namespace of this server's copies in the resolved references of a policy.
func settleReferences(r *resources.Resource, copyNamespace string) error {
	written, err := resources.WrittenReferences(r)
	if err != nil || len(written) == 0 {
		return err
	}
	spec, err := resources.EditReferences(r, func(at string, ref map[string]any) {
		if _, resolved := written[at]; resolved {
			resources.SetNamespace(ref, copyNamespace)
		}
	})
	if err != nil {
		return err
	}
	r.Spec = spec
	return nil
}

// Unsettled reports whether a resolved reference of a copy has another namespace than that of copies here: a server of
// an earlier version set none, and a server may be given another system namespace.
func Unsettled(r *resources.Resource, copyNamespace string) bool {
	if r.Labels[resources.LabelReferences] == "" {
		return false
	}
	now := r.Clone()
	return settleReferences(now, copyNamespace) == nil && !now.Spec.Equal(r.Spec)
}

// restoreReferences restores r's references as they were written and drops the label.
func restoreReferences(r *resources.Resource) error {
	written, err := resources.AsWritten(r)
	if err != nil {
		return err
	}
	r.Spec, r.Labels = written.Spec, written.Labels
	return nil
}

func hasDestinations(r *resources.Resource) bool {
	p, err := policyOf(r)
	return err == nil && p != nil && len(p.To) > 0
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
