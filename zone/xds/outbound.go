package xds

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// outbound is a port on which the application reaches a service.
type outbound struct {
	listen endpoint
	ref    resources.BackendRef
	// tags are those of the Dataplanes that it leads to; nil if it names a service.
	tags  map[string]string
	field string
	// redirected means that connections come by the listener for redirected ones, and nothing binds to the address.
	redirected bool
	// assigned means that the platform gave the service the address, so that others dial it, too.
	assigned bool
}

// outboundsOf returns the outbounds of a Dataplane. problems names those that get no listener, with the reason.
func outboundsOf(dp *resources.Resource) (out []outbound, problems []string, err error) {
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	taken := map[endpoint]bool{}
	for i, o := range spec.GetNetworking().GetOutbound() {
		field := fmt.Sprintf("networking.outbound[%d]", i)
		ref := o.GetBackendRef()
		listen := endpoint{address: cmp.Or(o.GetAddress(), "127.0.0.1"), port: o.GetPort()}
		switch {
		case ref == nil && o.GetTags()[resources.TagService] == "":
			problems = append(problems, field+": "+resources.NamelessOutbound)
		case !listen.dialable():
			problems = append(problems, fmt.Sprintf("%s: address %q, port %d: want an IP address and a port", field,
				listen.address, listen.port))
		case taken[listen]:
			problems = append(problems, fmt.Sprintf("%s: another outbound listens on %s:%d too", field, listen.address,
				listen.port))
		default:
			taken[listen] = true
			if ref == nil {
				out = append(out, outbound{listen: listen, field: field, tags: o.GetTags()})
				continue
			}
			target := resources.TargetRef{Kind: ref.GetKind(), Name: ref.GetName(), Labels: ref.GetLabels()}
			out = append(out, outbound{listen: listen, field: field,
				ref: resources.BackendRef{TargetRef: target, Port: ref.GetPort()}})
		}
	}
	return out, problems, nil
}

// find resolves a reference to a port. Without a port, the reference means the service's only one, or the given
// section.
func find(dests *matching.Destinations, from matching.Referrer, ref *resources.BackendRef,
	section string) (*backend, string) {
	target, problem := dests.ResolvePort(from, ref, section)
	if problem != "" {
		return nil, problem
	}
	b, ok := newBackend(target.Destination, target.Section)
	if !ok {
		return nil, fmt.Sprintf("%s has no port %s", target.Destination.KRI, target.Section)
	}
	return b.of(ref.Subset()), ""
}

// referent is a service with all names by which references may mean it, for many references.
type referent struct {
	*resources.Resource
	names [3]string
}

func referentOf(r *resources.Resource) *referent {
	display := r.DisplayName()
	return &referent{r, [...]string{display, r.Name, hashing.Name(r.Mesh, display, r.Zone(), r.HomeNamespace())}}
}

// by reports whether a reference could mean the service, in any namespace.
func (m *referent) by(ref *resources.BackendRef) bool {
	if string(m.Type) != ref.ServiceKind() {
		return false
	}
	if len(ref.Labels) > 0 {
		return carries(m.Labels, ref.Labels)
	}
	return slices.Contains(m.names[:], ref.Name)
}
