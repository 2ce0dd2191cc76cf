// Package bolt owns the durable store: one bbolt file, the committer that writes it, and the file's format. Reads are
// the in-memory view's (store.Replica), which is loaded from the file at start; nothing is read from the file later. It
// must not know what resources mean.
//
// The file has two buckets. "resources" has one entry a resource: the key's parts joined by NUL, and the value that
// resources/store/record.go describes, with a checksum over both. "store" has "format", the version of the format in decimal, and
// "state", the revision and totals over all entries, so that an entry that vanished is noticed as well as one that changed.
package bolt
