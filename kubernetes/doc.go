// Package kubernetes connects a server with the API server of a Kubernetes cluster, in which its users write. Objects
// become resources of the server's store, by the rules of its HTTP API (feed*.go). What the server knows of them becomes
// conditions in their status (conditions.go, reports.go). What others wrote becomes objects that nobody may change
// (projection.go). A webhook judges what users are about to write (admission*.go). Nothing that proxies get waits for the
// API server: the store decides, and without the API server the server goes on with what it has.
package kubernetes
