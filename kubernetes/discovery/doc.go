// Package discovery makes the pods and Services of a cluster known to the mesh: a pod with a proxy as a Dataplane, a
// Service as a MeshService. What becomes of an object is said by pure functions; Controller follows the cluster and
// writes what differs into the zone's store.
package discovery
