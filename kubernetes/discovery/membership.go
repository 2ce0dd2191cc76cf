package discovery

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// labelInjection on a namespace asks for proxies in its pods. Source: Kuma.
const labelInjection = "kuma.io/sidecar-injection"

// outside are the namespaces whose Services never become MeshServices, as their pods get no proxies.
var outside = []string{"kube-system", "kube-public", "kube-node-lease"}

const defaultMesh = "default"

// asksForProxies reports whether pods of the namespace get proxies by default.
func (n *Namespace) asksForProxies() bool {
	return n != nil && slices.Contains([]string{"enabled", "true", "yes"}, n.Metadata.Labels[labelInjection])
}

// meshOf returns the mesh of a Service: from its label, its namespace's, or the default one.
func meshOf(ns *Namespace, s *Service) string {
	if mesh := s.Metadata.Labels[resources.LabelMesh]; mesh != "" {
		return mesh
	}
	if ns != nil && ns.Metadata.Labels[resources.LabelMesh] != "" {
		return ns.Metadata.Labels[resources.LabelMesh]
	}
	return defaultMesh
}

// selects reports whether the Service is in front of a pod. One without a selector is in front of none.
func (s *Service) selects(p *Pod) bool {
	for key, value := range s.Spec.Selector {
		if got, ok := p.Metadata.Labels[key]; !ok || got != value {
			return false
		}
	}
	return s.Metadata.Namespace == p.Metadata.Namespace && s.fronts()
}

// fronts reports whether a Service selects pods.
func (s *Service) fronts() bool { return len(s.Spec.Selector) > 0 && s.Spec.Type != "ExternalName" }

// headless reports whether the name of the Service resolves to its pods instead of an address of its own.
func (s *Service) headless() bool { return s.Spec.ClusterIP == "None" }

// ignored reports whether a user keeps the Service out of the mesh.
func (s *Service) ignored() bool {
	return slices.Contains([]string{"enabled", "true", "yes"}, s.Metadata.Annotations[annotationIgnore])
}

// topology are the labels of a node that its pods' Dataplanes get.
var topology = []string{"kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}

// reserved reports whether a label belongs to the mesh. A pod's or Service's value of such a label is not used: the
// mesh's own labels follow from what the API server vouches for.
func reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kuma.io" || strings.HasSuffix(domain, ".kuma.io") || domain == "causeway.io" ||
		strings.HasSuffix(domain, ".causeway.io")
}

// carried returns the labels of an object that its resource gets too.
func carried(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+len(topology))
	for key, value := range labels {
		if !reserved(key) {
			out[key] = value
		}
	}
	return out
}
