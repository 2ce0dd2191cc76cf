// Package node starts a Kubernetes of one node on this machine: etcd, API server, controllers, scheduler, kubelet,
// kube-proxy, containerd and a DNS, all real, in namespaces of their own (network, mounts, processes, host name). Ending
// the first process of the node ends everything. Several nodes, each a cluster, run side by side; their pods reach each
// other and this machine. It needs root, the programs of test/tools/kubernetes/build.sh and the Debian packages of
// packages.sh there. Images are made here and loaded; nothing is pulled.
package node
