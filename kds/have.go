package kds

import (
	"cmp"
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// ask subscribes to every type of this direction, in order of dependency. A peer that resumes reads what this side says
// of itself from the first request of a stream; others get it with each type.
func (v *receiver) ask(ctx context.Context) error {
	node := v.node
	for _, d := range resources.Descriptors() {
		if !v.arrival.Direction.Carries(d) {
			continue
		}
		req := &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(d.Type), ResourceNamesSubscribe: []string{"*"}}
		if v.resume {
			req.InitialResourceVersions = v.have(d.Type)
			node = &corev3.Node{Id: v.node.GetId()}
		}
		if err := v.send(ctx, req); err != nil {
			return err
		}
	}
	return nil
}

// unknownVersion stands for the version of a copy whose version is unknown: the peer sends it again, or removes it.
const unknownVersion = "unknown"

// have returns the versions of the copies in this store, for a peer that resumes.
func (v *receiver) have(t resources.Type) map[string]string {
	have := map[string]string{}
	for r := range v.copies(v.storeOf(t).Snapshot(), t) {
		name := v.wireOf(r)
		version, refused := v.versions.versionOf(name, r)
		if !refused && v.misread(r) {
			version = ""
		}
		if refused && !v.refusals.Has(v.arrival.Direction, t, name) {
			version, refused = "", false // there was no room to keep the reason: judge it again
		}
		have[name] = cmp.Or(version, unknownVersion)
		if refused {
			v.claim(t, name)
		}
	}
	return have
}

func (v *receiver) claim(t resources.Type, name string) {
	state := v.types[t]
	if state == nil {
		state = &reception{}
		v.types[t] = state
	}
	if state.claimed == nil {
		state.claimed = map[string]bool{}
	}
	state.claimed[name] = true
}

// misread reports whether a copy would differ if it arrived now: the server that stored it did not compute roles, or
// set no namespace in references, or a system namespace has another name since.
func (v *receiver) misread(r *resources.Resource) bool {
	if exchange.Unsettled(r, v.arrival.OwnNamespace) {
		return true
	}
	if v.arrival.Direction != exchange.ZoneToGlobal || !r.Descriptor().HasOwner() {
		return false
	}
	namespace, role := r.HomeNamespace(), resources.Role(r.Labels[resources.LabelPolicyRole])
	return role == "" || (role == resources.RoleSystem) != (namespace == "" || namespace == v.arrival.SystemNamespace)
}
