// Package kubernetes tests what Causeway is in a real cluster: the CustomResourceDefinitions, the charts and the
// manifests that causewayctl prints. Package node starts the cluster.
package kubernetes
