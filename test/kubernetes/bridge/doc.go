// Package bridge tests what connects a zone with a Kubernetes cluster, with a real API server and a real etcd on loopback
// and without nodes: nothing here runs in pods.
package bridge
