package resources

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
)

// eachBackendOf calls visit for each backend to which a route sends requests, connections or mirrored requests. at is its
// path, which includes `spec`. It reports whether it could read the whole route.
func eachBackendOf(p *Policy, visit func(ref *BackendRef, at *fieldPath)) bool {
	whole := true
	for i := range p.To {
		var rules []struct {
			Default HTTPRouteConf `json:"default"`
		}
		if len(p.To[i].Rules) == 0 {
			continue
		}
		if json.Unmarshal(p.To[i].Rules, &rules) != nil {
			whole = false
			continue
		}
		for j := range rules {
			conf := &rules[j].Default
			at := top("spec").field("to").item(i).field("rules").item(j).field("default")
			for k := range conf.BackendRefs {
				visit(&conf.BackendRefs[k], at.field("backendRefs").item(k))
			}
			for k := range conf.Filters {
				if len(conf.Filters[k].RequestMirror) == 0 {
					continue
				}
				if ref := mirrorBackend(&conf.Filters[k]); ref != nil {
					visit(ref, at.field("filters").item(k).field("requestMirror").field("backendRef"))
				} else {
					whole = false
				}
			}
		}
	}
	return whole
}

// References returns all references of a policy to services and routes. References to parts of services become
// references to the service.
func References(r *Resource) []TargetRef {
	p, err := SpecAs[Policy](r)
	if err != nil {
		return nil
	}
	var out []TargetRef
	for i := range p.To {
		out = append(out, p.To[i].TargetRef)
	}
	eachBackendOf(p, func(ref *BackendRef, _ *fieldPath) {
		to := ref.TargetRef
		to.Kind = ref.ServiceKind()
		out = append(out, to)
	})
	return out
}

// SubsetBackends returns the backends of a route that are parts of services. It skips unreadable ones.
func SubsetBackends(r *Resource) []BackendRef {
	if !bytes.Contains(r.Spec.JSON(), []byte(KindMeshServiceSubset)) {
		return nil
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return nil
	}
	var out []BackendRef
	eachBackendOf(p, func(ref *BackendRef, _ *fieldPath) {
		if len(ref.Subset()) > 0 {
			out = append(out, *ref)
		}
	})
	return out
}

func mirrorBackend(f *HTTPRouteFilter) *BackendRef {
	var mirror struct {
		BackendRef *BackendRef `json:"backendRef"`
	}
	if json.Unmarshal(f.RequestMirror, &mirror) != nil {
		return nil
	}
	return mirror.BackendRef
}

// SendsElsewhere reports whether a route from another zone, with its references resolved, may send to services outside
// that zone and namespace. A MeshReferenceGrant must permit such a route. If a part is unreadable, the result is true.
func SendsElsewhere(r *Resource) bool {
	if p := r.Descriptor().Policy; p == nil || !p.Route {
		return false
	}
	written, err := WrittenReferences(r)
	if err != nil {
		return true
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return true
	}
	elsewhere := false
	whole := eachBackendOf(p, func(ref *BackendRef, at *fieldPath) {
		w, resolved := written[strings.TrimPrefix(at.String(), "spec.")]
		elsewhere = elsewhere || !ownService(r, ref, w, resolved)
	})
	return elsewhere || !whole
}

// ownService reports whether ref can only refer to MeshServices of r's own zone and namespace. It is either a reference
// by labels that require both, or a name that was resolved to the name of such a service's copy. A name that already
// was a copy's name when it was written may refer to any service.
func ownService(r *Resource, ref *BackendRef, written WrittenReference, resolved bool) bool {
	zone, ns := r.Zone(), r.HomeNamespace()
	switch {
	case ref.Kind != KindMeshService || zone == "" || ns == "":
		return false
	case len(ref.Labels) > 0:
		return ref.Labels[LabelZone] == zone && ref.Labels[LabelNamespace] == ns
	case !resolved || written.Namespace != "" && written.Namespace != ns:
		return false
	}
	return ref.Name == hashing.Name(r.Mesh, written.Name, zone, ns)
}
