package resources

import (
	"encoding/json"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
)

// backendsOf calls visit for each place that a route sends requests, connections or copies of requests to; at is the path below
// `spec`. It reports whether all of the route was read.
func backendsOf(p *Policy, visit func(ref *BackendRef, at *fieldPath)) bool {
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

func mirrorBackend(f *HTTPRouteFilter) *BackendRef {
	var mirror struct {
		BackendRef *BackendRef `json:"backendRef"`
	}
	if json.Unmarshal(f.RequestMirror, &mirror) != nil {
		return nil
	}
	return mirror.BackendRef
}

// SendsElsewhere reports whether a route that another zone wrote, with its references resolved, may send to services outside of that
// zone and of its namespace, so that a MeshReferenceGrant has to permit it. What cannot be read may.
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
	whole := backendsOf(p, func(ref *BackendRef, at *fieldPath) {
		w, resolved := written[strings.TrimPrefix(at.String(), "spec.")]
		elsewhere = elsewhere || !ownService(r, ref, w, resolved)
	})
	return elsewhere || !whole
}

// ownService reports whether ref can mean only MeshServices of r's own zone and namespace: a reference by labels that say so, or by a
// name that was resolved to that of the copy of such a service. A name that was that of a copy already may be anybody's.
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
