package main

import (
	"context"

	"github.com/causeway-mesh/causeway/resources/api"
)

// store checks whether the global that answers reaches its store: what it says of zones and policies may be old while it
// does not, whoever may read its diagnostics port.
func (e *examination) store(ctx context.Context) {
	var list api.ReplicaList
	if err := e.client.JSON(ctx, api.Request{Path: "/_replicas"}, &list); err != nil {
		if !api.IsNotFound(err) { // a zone, or an older server
			e.unknown("store", "", err, "use a credential that may read zones: causewayctl auth can-i read Zone")
		}
		return
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Asked && r.Store.Reachable != nil && !*r.Store.Reachable {
			e.add(finding{
				findingProblem, "store", r.Instance, r.Store.Error,
				"it takes no writes, and what it says of policies and of zones may be old: others may have written since",
				"look at the disk (--data-dir on the server's machine), or at the members of etcd and the way to them; ask another replica meanwhile: causewayctl get replicas",
			})
		}
	}
}
