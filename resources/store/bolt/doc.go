// Package bolt implements the durable store: one bbolt file, the committer that writes it, and the format of the file.
// Reads use the in-memory view (store.View), which is loaded from the file at start; later reads never touch the
// file. The package must not depend on what resources mean.
//
// The file has two buckets. "resources" has one entry for each resource: the parts of the key joined by NUL, and the
// value that resources/store/record.go describes, with a checksum over both. "store" has "format", the version of the
// format in decimal, and "state", the revision and the totals over all entries. The totals reveal a missing entry as
// well as a changed one.
package bolt
