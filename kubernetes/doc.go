// Package kubernetes connects a server with the API server of a Kubernetes cluster, in which users write resources.
// Objects become resources of the server's store, by the rules of its HTTP API (feed*.go). The state of those resources
// becomes conditions in the objects' status (conditions.go, reports.go). Resources from elsewhere become read-only
// objects (projection.go). A webhook judges writes before they happen (admission*.go). Nothing that proxies get waits
// for the API server: the store decides, and the server continues without the API server.
package kubernetes
