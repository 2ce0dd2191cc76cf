package main

import (
	"context"

	"github.com/causeway-mesh/causeway/api"
)

// store checks whether the responding server reaches its store. While it does not, its view of zones and policies may
// be old. The check does not need the diagnostics port.
func (e *examination) store(ctx context.Context) {
	var list api.ReplicaList
	if err := e.client.JSON(ctx, api.Request{Path: "/_replicas"}, &list); err != nil {
		if !api.IsNotFound(err) { // an older server
			e.unknown("store", "", err, "use a credential that may read zones: causewayctl auth can-i read Zone")
		}
		return
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Asked && (isFalse(r.Store.Reachable) || isFalse(r.Store.Writable)) {
			e.add(storeFinding(r))
		}
	}
}

// isFalse reports whether something is known to be false.
func isFalse(known *bool) bool { return known != nil && !*known }

// storeFinding is about a global that cannot write to its store, and perhaps cannot read it.
func storeFinding(r *api.Replica) finding {
	f := finding{
		findingProblem, "store", r.Instance, r.Store.Error,
		"it takes no writes; what it has can be read",
		"make room on the disk of the data folder, or mend the disk (--data-dir on the server's machine looks at it); it writes again without a restart",
	}
	if isFalse(r.Store.Reachable) {
		f.Why = "it takes no writes, and what it says of policies and of zones may be old: others may have written since"
	}
	if r.Store.Kind == "etcd" {
		f.What = "etcd: " + f.What
		f.Do = "make room in etcd, and end its alarm (etcdctl compact, defrag, alarm disarm); it writes again without a restart"
	}
	if r.Store.Kind == "etcd" && isFalse(r.Store.Reachable) {
		f.Do = "check that most members of etcd run (etcdctl endpoint health), and the way to them; it writes again without a restart; ask another replica meanwhile: causewayctl get replicas"
	}
	return f
}
