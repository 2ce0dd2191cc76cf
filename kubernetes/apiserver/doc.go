// Package apiserver is a client of a Kubernetes API server: requests, lists in pages, and watches that are kept open.
// It does not interpret the objects. It exists because the usual client libraries outweigh the rest of the server, in
// its binary and in its memory, and the needed part fits in a few files.
package apiserver
