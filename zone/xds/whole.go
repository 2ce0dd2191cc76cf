package xds

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// wholeTypes lists the policies that shape a proxy as a whole. A change of one rebuilds everything for the proxies that
// it selects; what stays the same is not sent.
var wholeTypes = []resources.Type{resources.TypeMeshTrace, resources.TypeMeshAccessLog, resources.TypeMeshMetric,
	resources.TypeMeshTLS, resources.TypeMeshPassthrough, resources.TypeMeshProxyPatch}

// isWhole reports whether a policy shapes proxies as a whole: one of wholeTypes, or a MeshTimeout or MeshCircuitBreaker
// on what inbounds receive.
func isWhole(r *resources.Resource) bool {
	return slices.Contains(wholeTypes, r.Type) || r.Type == resources.TypeMeshTimeout && resources.LimitsConnections(r) ||
		resources.LimitsInbounds(r)
}

// observed holds the effect of the policies of wholeTypes on a proxy. The zero value is for a proxy without them.
type observed struct {
	// trace is nil for a proxy that traces nothing.
	trace *tracing
	// metrics is the listener that serves the proxy's metrics; nil for none.
	metrics *resource
	// collectors are the clusters of the collectors that the proxy reports to, and of what passes through it.
	collectors []*resource
	// capture is the listener for redirected connections, nil for none. routes are those of HTTP on it.
	capture *resource
	routes  []*resource
	// tls is what the proxy's connections in the mesh may negotiate.
	tls handshakes
	// patches are the MeshProxyPatches, in the order in which they are applied.
	patches []*patch
	// closed means that a required one cannot be read.
	closed bool
	// problems names parts of policies without effect; unsaid the policies that a gRPC server cannot be configured
	// with.
	problems, unsaid []string
}

// observe applies the policies of wholeTypes to a target.
func (t *target) observe(policies []*matching.Policy) error {
	t.observed = observed{}
	if t.proxyless {
		for _, typ := range append(slices.Clone(wholeTypes), resources.TypeMeshCircuitBreaker) {
			for _, p := range policies {
				if p.Resource.Type == typ && p.Enforced() && matching.Selects(p, t.match) {
					t.observed.unsaid = append(t.observed.unsaid, p.KRI.String()+": a gRPC server takes no "+string(typ))
				}
			}
		}
		slices.Sort(t.observed.unsaid)
		return nil
	}
	if err := t.passBy(matching.ProxyConf(resources.TypeMeshPassthrough, t.match, policies)); err != nil || len(policies) == 0 {
		return err
	}
	t.secure(policies)
	t.logInbounds(policies)
	t.limitInbounds(policies)
	t.breakInbounds(policies)
	t.patchBy(policies)
	if err := t.measureBy(matching.ProxyConf(resources.TypeMeshMetric, t.match, policies)); err != nil {
		return err
	}
	return t.traceBy(matching.ProxyConf(resources.TypeMeshTrace, t.match, policies))
}

// workInWholeLocked marks the proxies that a policy selects or selected.
func (x *Proxies) workInWholeLocked(revision uint64, key resources.Key, r *resources.Resource) {
	m := x.meshes[key.Mesh]
	if m == nil || m.since >= revision {
		return
	}
	selected := map[*proxy]struct{}{}
	m.remove(m.whole, key, selected)
	m.patches.forget(key)
	if r != nil && isWhole(r) {
		m.add(m.whole, matching.NewPolicy(r, x.cfg.Home.SystemNamespace), selected)
	}
	for p := range selected {
		if key.Type == resources.TypeMeshAccessLog {
			p.logFiles.again()
		}
		if key.Type == resources.TypeMeshProxyPatch {
			p.unpatchable.again()
		}
		x.network.mark(p, everything)
	}
}

// showObserved shows which policies on the proxy as a whole have no effect on it, and reports whether that changed.
func (p *proxy) showObserved(next *state) bool {
	if p.target == nil {
		return false
	}
	problems := slices.Concat(p.target.observed.problems, next.patched.problems)
	return p.record.setProblem(problemPolicies, strings.Join(problems, "; "))
}
