package xds

import (
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// neighbours returns the MeshServices that may select a Dataplane.
func neighbours(snap store.Snapshot, dp *resources.Resource) iter.Seq[*resources.Resource] {
	return snap.List(store.Query{Type: resources.TypeMeshService, Mesh: dp.Mesh, Namespace: &dp.Namespace})
}

// serves reports whether a service may set the protocol of one of the inbounds.
func serves(service *resources.Resource, p *matching.Proxy) bool {
	return service != nil && slices.ContainsFunc(p.Inbounds,
		func(in matching.InboundPort) bool { return matching.Serves(service, p, &in, "") })
}
