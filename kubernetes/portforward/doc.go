// Package portforward connects to Services and pods of a Kubernetes cluster from outside of it, by kubectl port-forward.
// kubectl reads the kubeconfig, authenticates to the API server by all means that clusters have, and carries bytes. The
// caller speaks TLS with the server in the pod, so that neither kubectl nor the API server sees a credential.
package portforward
