// Package podtoken tells which pod presents a token. Kubernetes makes such a token for one pod, as one of its service
// accounts, for an audience and for a time, and the kubelet renews it in the pod. The API server alone reports whether
// it is good, by TokenReview: it knows whether the pod is still there.
package podtoken
