// Package discovery makes the pods and Services of a cluster known to the mesh: a pod with a proxy as a Dataplane, a
// Service as a MeshService. Pure functions translate the objects; Controller follows the cluster and writes differences
// into the zone's store.
package discovery
