package matching

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Selection is a resource that affects proxies, and the Dataplanes that it selects. The resource is a policy, a
// TrafficTarget, or a Mesh, which selects all Dataplanes in it.
type Selection struct {
	Resource *resources.Resource
	// Mesh is the mesh of the Dataplanes.
	Mesh string
	// policy is nil for a Mesh and a MeshGateway.
	policy *Policy
	// gateways are the MeshGateways of the mesh. They decide which proxy serves which.
	gateways        []*resources.Resource
	systemNamespace string
}

// NewSelection reads r. It returns nil for a resource that selects no Dataplanes. gateways are the MeshGateways of r's
// mesh.
func NewSelection(r *resources.Resource, systemNamespace string, gateways iter.Seq[*resources.Resource]) *Selection {
	s := &Selection{Resource: r, Mesh: r.Mesh, systemNamespace: systemNamespace}
	switch {
	case r.Type == resources.TypeMesh:
		s.Mesh = r.Name
	case r.Type == resources.TypeMeshGateway:
	case r.Type == resources.TypeTrafficTarget: // its references do not affect which proxies it selects
		s.policy = NewTrafficTarget(r, NewTrafficSpecs(systemNamespace, nil))
	case r.Descriptor().Policy != nil:
		s.policy = NewPolicy(r, systemNamespace)
	default:
		return nil
	}
	if r.Type == resources.TypeMeshGateway || s.policy != nil && onGateway(s.policy) {
		s.gateways = slices.Collect(gateways)
	}
	return s
}

// Labels returns labels that every selected Dataplane has, to look for them by.
func (s *Selection) Labels() map[string]string {
	if s.policy == nil {
		return nil
	}
	return s.policy.Target.Labels
}

// Has reports whether a Dataplane is selected. One that does not decode is not.
func (s *Selection) Has(dataplane *resources.Resource) bool {
	if dataplane.Mesh != s.Mesh || s.policy != nil && !MaySelect(s.policy, dataplane) {
		return false
	}
	ofGateway := s.Resource.Type == resources.TypeMeshGateway
	if ofGateway && !mayServe(dataplane, s.Resource, s.systemNamespace) {
		return false // the others need not be looked at
	}
	proxy, err := NewProxy(dataplane)
	if err != nil {
		return false
	}
	proxy = proxy.WithGateways(s.gateways, s.systemNamespace)
	switch {
	case ofGateway:
		return proxy.served != nil && proxy.served.Key == s.Resource.Key
	case s.policy == nil:
		return true
	}
	return !JudgesNobody(s.Resource.Type, proxy) && Selects(s.policy, proxy)
}

// JudgesNobody reports whether policies of a type are permissions, which do not apply to the proxy: a gateway's clients
// come from outside the mesh, and it has no inbounds to judge them.
func JudgesNobody(t resources.Type, proxy *Proxy) bool {
	permission := t == resources.TypeMeshTrafficPermission || t == resources.TypeTrafficTarget
	return permission && proxy.Gateway && len(proxy.Inbounds) == 0
}

// Enforced reports whether any part of the resource takes effect.
func (s *Selection) Enforced() bool {
	_, none := resources.Unenforced(s.Resource)
	return !none && (s.policy == nil || s.policy.Enforced())
}

// Problems holds a proxy's problems by source, as in its insight.
type Problems map[string]string

// ProblemsOf reads the problems in a DataplaneInsight, which may be nil.
func ProblemsOf(insight *resources.Resource) Problems {
	if insight == nil {
		return nil
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return nil
	}
	out := Problems{}
	for source, text := range spec.GetMetadata().GetFields()["problems"].GetStructValue().GetFields() {
		out[source] = text.GetStringValue()
	}
	return out
}

// LeftOut returns the reason why the resource has no effect on a Dataplane that it selects, according to the Dataplane
// and its proxy's problems. It is empty if the resource has an effect. known is false if the proxy has more problems
// than are kept: the reason then says why that is unknown.
func (s *Selection) LeftOut(dataplane *resources.Resource, problems Problems,
	services []*resources.Resource) (why string, known bool) {
	switch {
	case s.Resource.Type == resources.TypeMeshGateway:
		return problems.about(resources.KRIOf(s.Resource).String(), resources.ProblemGateway)
	case s.policy == nil:
		return "", true
	}
	if resources.RequestsOnly(s.Resource.Type) {
		if proxy, err := NewProxy(dataplane); err == nil {
			if why := WithoutHTTP(s.policy, proxy.WithServices(services)); why != "" {
				return why, true
			}
		}
	}
	return problems.about(s.policy.KRI.String(), resources.ProblemProxyless, resources.ProblemPolicies,
		resources.ProblemGateway, resources.ProblemOutbounds)
}

// maxLeftOut limits the proxies without effect that an answer names.
const maxLeftOut = 10

// NameLeftOut adds a proxy on which a resource has no effect, with the reason, to a list of what is not enforced. It
// adds nothing without a reason, and names only a few proxies.
func NameLeftOut(list []string, dataplane *resources.Resource, why string) []string {
	if why == "" || len(list) >= maxLeftOut {
		return list
	}
	return append(list, "on "+resources.KRIOf(dataplane).String()+": "+why)
}

// moreProblems is why it is unknown whether a resource is among a proxy's problems.
const moreProblems = "its proxy has more problems than are kept, and whether this is among them is not known"

// about returns the problems with a policy that the proxy does not support, or that has no effect on it.
func (p Problems) about(kri string, sources ...string) (text string, known bool) {
	cut := false
	for _, source := range sources {
		for _, part := range strings.Split(p[source], "; ") {
			if strings.Contains(part, kri) {
				return part, true
			}
		}
		cut = cut || strings.HasSuffix(p[source], resources.ProblemsCut)
	}
	if cut {
		return moreProblems, false
	}
	return "", true
}

// NotEnforced lists the parts of the resource that have no effect, and why.
func (s *Selection) NotEnforced() []string {
	if s.policy != nil && !s.policy.Enforced() {
		return []string{"it is labelled " + resources.LabelEffect + ": " + effectShadow}
	}
	if s.Resource.Type == resources.TypeMeshGateway {
		return resources.UnservedParts(s.Resource)
	}
	parts, _ := resources.Unenforced(s.Resource)
	return parts
}

// Connected reads a DataplaneInsight, which may be nil. It returns the first open stream of the proxy. If no stream is
// open, it returns nil and the time of the last disconnection, which is zero if no connection is known.
func Connected(insight *resources.Resource) (open *meshpb.DiscoverySubscription, since time.Time) {
	if insight == nil {
		return nil, time.Time{}
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return nil, time.Time{}
	}
	for _, s := range spec.GetSubscriptions() {
		if s.GetDisconnectTime() == nil {
			return s, time.Time{}
		}
		if t := s.GetDisconnectTime().AsTime(); t.After(since) {
			since = t
		}
	}
	return nil, since
}
