// Package apiserver is a client of a Kubernetes API server: requests, lists in pages, and watches that are kept up. It
// knows nothing of what the objects mean. It exists because the usual client libraries weigh more than everything else in
// the server, in its binary and in its memory, and what is needed of them fits in a few files.
package apiserver
