package matching

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Selection is a resource that proxies take something from, and which Dataplanes it selects: a policy, a TrafficTarget, or a Mesh, which
// has all of its own.
type Selection struct {
	Resource *resources.Resource
	// Mesh is the one whose Dataplanes are meant.
	Mesh string
	// policy is nil for a Mesh.
	policy *Policy
}

// NewSelection reads r; nil for what selects no Dataplanes.
func NewSelection(r *resources.Resource, systemNamespace string) *Selection {
	switch {
	case r.Type == resources.TypeMesh:
		return &Selection{Resource: r, Mesh: r.Name}
	case r.Type == resources.TypeTrafficTarget: // what it refers to does not change whom it selects
		return &Selection{Resource: r, Mesh: r.Mesh, policy: NewTrafficTarget(r, NewTrafficSpecs(systemNamespace, nil))}
	case r.Descriptor().Policy != nil:
		return &Selection{Resource: r, Mesh: r.Mesh, policy: NewPolicy(r, systemNamespace)}
	}
	return nil
}

// Has reports whether a Dataplane is selected. One that does not decode is not.
func (s *Selection) Has(dataplane *resources.Resource) bool {
	proxy, err := NewProxy(dataplane)
	return err == nil && dataplane.Mesh == s.Mesh && (s.policy == nil || Selects(s.policy, proxy))
}

// Enforced reports whether any part of it takes effect.
func (s *Selection) Enforced() bool {
	_, none := resources.Unenforced(s.Resource)
	return !none && (s.policy == nil || s.policy.Enforced())
}

// NotEnforced says which parts of it take no effect, and why.
func (s *Selection) NotEnforced() []string {
	if s.policy != nil && !s.policy.Enforced() {
		return []string{"it is labelled " + resources.LabelEffect + ": " + effectShadow}
	}
	parts, _ := resources.Unenforced(s.Resource)
	return parts
}

// LastConnected reads a DataplaneInsight, which may be nil: whether the proxy is connected, and otherwise since when it is not; zero
// where nothing is known of a connection.
func LastConnected(insight *resources.Resource) (since time.Time, connected bool) {
	if insight == nil {
		return time.Time{}, false
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return time.Time{}, false
	}
	if slices.ContainsFunc(spec.GetSubscriptions(), func(s *meshpb.DiscoverySubscription) bool { return s.GetDisconnectTime() == nil }) {
		return time.Time{}, true
	}
	for _, s := range spec.GetSubscriptions() {
		if t := s.GetDisconnectTime().AsTime(); t.After(since) {
			since = t
		}
	}
	return since, false
}
