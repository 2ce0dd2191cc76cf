// Package cni captures the connections of pods when their network is made, so that no container of a pod needs a
// capability for it: a chained plugin of the Container Network Interface, and its installation on a node.
//
// The plugin captures a pod that has the annotation Annotation, which the container runtime passes to it. It asks nobody
// else: neither the API server nor a process on the node. A pod that has the annotation and cannot be captured does not
// start. All others start whatever happens.
package cni
