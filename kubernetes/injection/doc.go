// Package injection adds a proxy to pods. It is pure: from a pod, its namespace and the zone's settings it computes a
// JSON patch, or the reason why the pod must not start. A pod that asks for a proxy never starts without one. The names
// of labels and annotations are those of Kuma, where they mean the same.
package injection
