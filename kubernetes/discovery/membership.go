package discovery

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// labelInjection on a namespace asks for proxies in its pods. Source: Kuma.
const labelInjection = "kuma.io/sidecar-injection"

// outside are the namespaces whose Services are no MeshServices whatever labels say, as their pods get no proxies.
var outside = []string{"kube-system", "kube-public", "kube-node-lease"}

const defaultMesh = "default"

// asksForProxies reports whether pods of the namespace get proxies unless they say otherwise.
func (n *Namespace) asksForProxies() bool {
	return n != nil && slices.Contains([]string{"enabled", "true", "yes"}, n.Metadata.Labels[labelInjection])
}

// meshOf returns the mesh of a Service: that of its label, of its namespace's, or the default one.
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

// fronts reports whether a Service is one in front of pods.
func (s *Service) fronts() bool { return len(s.Spec.Selector) > 0 && s.Spec.Type != "ExternalName" }

// headless reports whether the name of the Service means its pods, and no address of its own.
func (s *Service) headless() bool { return s.Spec.ClusterIP == "None" }

// ignored reports whether a user wants the mesh to know nothing of the Service.
func (s *Service) ignored() bool {
	return slices.Contains([]string{"enabled", "true", "yes"}, s.Metadata.Annotations[annotationIgnore])
}

// topology are the labels of a node that its pods' Dataplanes have.
var topology = []string{"kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}

// reserved reports whether a label is of the mesh. What a pod or a Service says under such a key is not taken over: the
// mesh's own labels follow from what the API server vouches for.
func reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kuma.io" || strings.HasSuffix(domain, ".kuma.io") || domain == "causeway.io" ||
		strings.HasSuffix(domain, ".causeway.io")
}

// carried returns the labels of an object that its resource has too.
func carried(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+len(topology))
	for key, value := range labels {
		if !reserved(key) {
			out[key] = value
		}
	}
	return out
}
