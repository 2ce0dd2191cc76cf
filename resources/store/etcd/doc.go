// Package etcd implements the store that several servers share: resources in an etcd cluster, and in each server one
// committer and one view in memory (store.View), kept up to date by an etcd watch. It must not depend on what
// resources mean.
//
// These keys are below the prefix:
//
//	format      the version of this layout, in decimal
//	program     the version of the program that last opened the store
//	head        the revision of the last write, and which part of it (JSON)
//	writer      there while a server writes a batch in several parts; it hangs on a lease, so it ends with the server
//	chain/N     a part of the chain of writes, from etcd revision N on: what outlives etcd's history of head
//	board/      what replicas tell each other beside the store: who is there, on leases, and notes (SharedState)
//	r/KEY       a resource: key and value as resources/store/record.go describes them; in format N from 2 on, r.N/KEY
//
// Each write compares head with the writer's view, so batches are evaluated on exactly the state that they apply to, as
// if there were only one writer: conditions and checks hold across servers. A writer that is late waits for the watch
// and evaluates its batches again. A batch that exceeds an etcd transaction is cut, in the order of its changes. No
// other server writes in between, and watching servers show it once its last part has arrived. Only a server that dies
// in the middle leaves a partial batch behind.
//
// Servers of different versions may share a store as long as they write the same format. A server that writes a newer
// format migrates the store when it opens it (migrate.go). From then on older servers cannot write, and show the
// contents from before.
package etcd
