package injection

import (
	"fmt"
	"slices"
)

// labelInjection turns injection on or off, on a namespace or on a pod; the pod's value wins. Source: Kuma.
const labelInjection = "kuma.io/sidecar-injection"

// annotationMirror marks the API object of a kubelet's static pod. The kubelet runs that pod whatever happens to this
// one, and runs no pod that somebody else marks so.
const annotationMirror = "kubernetes.io/config.mirror"

// neverInjected are the namespaces of Kubernetes itself, whose pods start whatever the state of the mesh.
var neverInjected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Exempt reports whether no pod of a namespace gets a proxy, whatever it asks for.
func Exempt(ns Namespace, s *Settings) bool {
	return slices.Contains(neverInjected, ns.Name) || ns.Name == s.SystemNamespace
}

// asks reports whether the pod gets a proxy.
func (p *pod) asks(ns Namespace, s *Settings, out *Result) (bool, error) {
	if Exempt(ns, s) {
		return false, nil
	}
	if _, ok := p.Metadata.Annotations[labelInjection]; ok {
		out.warnf("%s is a label, and has no effect as an annotation", labelInjection)
	}
	own, byPod := p.Metadata.Labels[labelInjection]
	value, where := own, "the pod"
	if !byPod {
		value, where = ns.Labels[labelInjection], "namespace "+ns.Name
	}
	switch value {
	case "enabled", "true", "yes":
	case "disabled", "false", "no", "":
		return false, nil
	default:
		return false, fmt.Errorf("label %s of %s is %q: want enabled or disabled", labelInjection, where, value)
	}
	if _, mirror := p.Metadata.Annotations[annotationMirror]; mirror {
		out.warnf("the pod gets no proxy, because it is a static pod of its node, which cannot be changed")
		return false, nil
	}
	switch {
	case p.Spec.HostNetwork && byPod:
		return false, fmt.Errorf("it has hostNetwork, and capture would redirect its node's connections: remove hostNetwork, or the label %s",
			labelInjection)
	case p.Spec.HostNetwork:
		out.warnf("the pod gets no proxy, because it has hostNetwork: its traffic is not judged")
		return false, nil
	}
	return true, nil
}

func (r *Result) warnf(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
