// Package podtoken identifies the pod that presents a token. Kubernetes issues such a token for one pod, as one of its
// service accounts, for an audience and a limited time, and the kubelet renews it in the pod. The package first
// verifies a token by the keys of the cluster, so that a stranger's token causes no request and leaves nothing behind.
// Then it asks the API server, by TokenReview, which alone knows whether the pod still exists.
package podtoken
