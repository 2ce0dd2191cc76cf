// Package etcd owns the store that several servers share: resources in an etcd cluster, one committer and one view in memory
// (store.Replica) in each server, kept up to date by an etcd watch. It must not know what resources mean.
//
// Below the prefix there are these keys:
//
//	format      the version of this layout, in decimal
//	program     the version of the program that last opened the store
//	head        the revision of the last write, and which part of it (JSON)
//	writer      there while a server writes a batch in several parts; it hangs on a lease, so it ends with the server
//	board/      what servers tell each other beside the store: who is there, on leases, and notes (Board)
//	r/KEY       a resource: key and value as resources/store/record.go describes them; in format N from 2 on, r.N/KEY
//
// Each write compares head with what the writer's view has seen, so batches are judged on exactly the state that they
// apply to, as if there were one writer only: conditions and checks hold across servers. Who was late waits for the watch and
// judges anew. A batch that is bigger than etcd takes in one transaction is cut, in the order of its changes; no other
// server writes in between, and watching servers show it when its last part has come. Only a server that dies in the
// middle leaves a part of a batch behind.
//
// Servers of different versions may share a store as long as they write the same format. One that writes a newer format brings what
// there is forward when it opens the store (migrate.go); from then on the older ones can write no more, and show what they had.
package etcd
