package kds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// References of policies that leave their zone (seed 004, "Cross-resource references"). The global, on receipt, gives each
// reference the name that the copy of its object has everywhere else, and keeps what was written in resources.LabelReferences. The
// destination zone puts the references into the namespace of its own copies. References by labels are left as they are.

// Lookup finds a resource of this server's store by the name it has here; nil when there is none.
type Lookup func(t resources.Type, mesh, name string) *resources.Resource

// resolveReferences is what the global does to a policy of a zone: r's labels must be pinned already, its role among them.
func resolveReferences(r *resources.Resource, here *Arrival) error {
	if !hasDestinations(r) {
		return nil
	}
	written := map[string]resources.WrittenReference{}
	spec, err := editReferences(r, func(at string, ref map[string]any) {
		w := resources.WrittenReference{Name: text(ref["name"]), Namespace: text(ref["namespace"])}
		name, settled := copyName(r, resources.Type(text(ref["kind"])), w, here)
		if !settled {
			return
		}
		written[at] = w
		ref["name"] = name
		setNamespace(ref, here.CopyNamespace)
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

// copyName is the name of a reference's object outside the zone of r. A reference to a copy follows its original: what
// is the name of a copy already stays, and what only the global makes is hashed without a zone (design, section 2).
// It is not settled when the reference may mean several namespaces and none of them has the object yet: then it stays a
// display name, which means here what it means in the zone, whatever comes later. No such policy crosses to other zones.
func copyName(r *resources.Resource, kind resources.Type, ref resources.WrittenReference, here *Arrival) (name string, settled bool) {
	if d, ok := resources.Lookup(kind); ok && d.WrittenOn == resources.OnGlobal {
		if isCopyOfOwn(kind, r.Mesh, ref.Name, here.Lookup) {
			return ref.Name, true
		}
		return hashing.Name(r.Mesh, ref.Name), true
	}
	held := here.Lookup(kind, r.Mesh, ref.Name)
	if held != nil && held.Zone() != "" || isCopyOfOwn(kind, r.Mesh, ref.Name, here.Lookup) {
		return ref.Name, true
	}
	namespaces, open := namespacesOf(r, kind, ref, here.SystemNamespace)
	for _, namespace := range namespaces {
		if copied := zoneHash(r.Mesh, ref.Name, r.Zone(), namespace); here.Lookup(kind, r.Mesh, copied) != nil {
			return copied, true
		}
	}
	if held != nil {
		return hashing.Name(r.Mesh, ref.Name), true
	}
	if open {
		return "", false
	}
	return zoneHash(r.Mesh, ref.Name, r.Zone(), namespaces[0]), true
}

// namespacesOf are those in which a reference looks for its object, in order; open says whether it goes on to any other.
// Without a namespace it means the policy's own, but a system policy's also others, and a MeshExternalService lives with the
// system only. What lives with the system may have no namespace.
func namespacesOf(r *resources.Resource, kind resources.Type, ref resources.WrittenReference, system string) (namespaces []string, open bool) {
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

// isCopyOfOwn reports whether name is what a zone calls a copy of one of the global's own resources.
func isCopyOfOwn(kind resources.Type, mesh, name string, lookup Lookup) bool {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return false
	}
	own := lookup(kind, mesh, name[:i])
	return own != nil && own.Zone() == "" && hashedName(own) == name
}

// settleReferences is what a zone does to the resolved references of a policy that arrives: it puts them into the
// namespace of its own copies.
func settleReferences(r *resources.Resource, copyNamespace string) error {
	written, err := resources.WrittenReferences(r)
	if err != nil || len(written) == 0 {
		return err
	}
	spec, err := editReferences(r, func(at string, ref map[string]any) {
		if _, resolved := written[at]; resolved {
			setNamespace(ref, copyNamespace)
		}
	})
	if err != nil {
		return err
	}
	r.Spec = spec
	return nil
}

// restoreReferences puts r's references back as they were written and drops the label.
func restoreReferences(r *resources.Resource) error {
	written, err := resources.WrittenReferences(r)
	if err != nil || written == nil {
		return err
	}
	spec, err := editReferences(r, func(at string, ref map[string]any) {
		if w, resolved := written[at]; resolved {
			ref["name"] = w.Name
			setNamespace(ref, w.Namespace)
		}
	})
	if err != nil {
		return err
	}
	r.Spec = spec
	delete(r.Labels, resources.LabelReferences)
	return nil
}

func hasDestinations(r *resources.Resource) bool {
	p, err := policyOf(r)
	return err == nil && p != nil && len(p.To) > 0
}

// editReferences calls edit for each reference by name, in `to`, to a real resource, and returns the edited spec.
func editReferences(r *resources.Resource, edit func(at string, ref map[string]any)) (*resources.Spec, error) {
	dec := json.NewDecoder(bytes.NewReader(r.Spec.JSON()))
	dec.UseNumber()
	var policy map[string]any
	if err := dec.Decode(&policy); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	eachObject(policy["to"], "to", func(at string, to map[string]any) {
		if ref, ok := to["targetRef"].(map[string]any); ok && realReference(ref, false) {
			edit(at+".targetRef", ref)
		}
		eachObject(to["rules"], at+".rules", func(at string, rule map[string]any) {
			conf, ok := rule["default"].(map[string]any)
			if !ok {
				return
			}
			eachBackend(conf, at+".default", edit)
		})
	})
	raw, err := marshal(policy)
	if err != nil {
		return nil, err
	}
	return resources.NewSpec(r.Type, raw)
}

// eachBackend visits the backends of a route's rule, those that requests are mirrored to among them.
func eachBackend(conf map[string]any, at string, edit func(string, map[string]any)) {
	eachObject(conf["backendRefs"], at+".backendRefs", func(at string, ref map[string]any) {
		if realReference(ref, true) {
			edit(at, ref)
		}
	})
	eachObject(conf["filters"], at+".filters", func(at string, filter map[string]any) {
		mirror, ok := filter["requestMirror"].(map[string]any)
		if !ok {
			return
		}
		if ref, ok := mirror["backendRef"].(map[string]any); ok && realReference(ref, true) {
			edit(at+".requestMirror.backendRef", ref)
		}
	})
}

func eachObject(v any, at string, visit func(at string, o map[string]any)) {
	items, _ := v.([]any)
	for i, item := range items {
		if o, ok := item.(map[string]any); ok {
			visit(fmt.Sprintf("%s[%d]", at, i), o)
		}
	}
}

// realReference reports whether ref names a resource, rather than labels, tags or a service of the older kind: those
// have underscores in their names, and as backends neither port, section nor namespace (kuma-wire, "Common pieces").
func realReference(ref map[string]any, backend bool) bool {
	name := text(ref["name"])
	if name == "" || ref["labels"] != nil || strings.Contains(name, "_") {
		return false
	}
	switch text(ref["kind"]) {
	case resources.KindMeshService:
		return !backend || ref["port"] != nil || text(ref["sectionName"]) != "" || text(ref["namespace"]) != ""
	case resources.KindMeshExternalService, resources.KindMeshMultiZoneService,
		resources.KindMeshHTTPRoute, resources.KindMeshTCPRoute:
		return true
	}
	return false
}

func setNamespace(ref map[string]any, namespace string) {
	if namespace == "" {
		delete(ref, "namespace")
		return
	}
	ref["namespace"] = namespace
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
