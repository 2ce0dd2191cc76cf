package xds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// wholeTypes lists the policies that affect a proxy as a whole. A change of one affects everything of the proxies that
// it selects. Unchanged parts are neither rebuilt nor sent.
var wholeTypes = []resources.Type{resources.TypeMeshTrace, resources.TypeMeshAccessLog, resources.TypeMeshMetric,
	resources.TypeMeshTLS, resources.TypeMeshPassthrough, resources.TypeMeshProxyPatch}

// isWhole reports whether a policy affects proxies as a whole: one of wholeTypes, or a MeshTimeout or
// MeshCircuitBreaker for inbound traffic.
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
	// collectors holds the clusters of the collectors that the proxy reports to, and of its passthrough traffic.
	collectors []*resource
	// capture is the listener for redirected connections, nil for none. routes are its HTTP routes.
	capture *resource
	routes  []*resource
	// tls holds the TLS settings of the proxy's connections in the mesh.
	tls handshakes
	// patches are the MeshProxyPatches, in the order in which they are applied.
	patches []*patch
	// closed means that a required one cannot be read.
	closed bool
	// parts, said, traceRule and kept are its inputs.
	parts     []*observedPart
	said      []*tlsRule
	traceRule *matching.ProxyRule
	kept      []any
	// problems names parts of policies without effect; unsupported the policies that a gRPC server does not support.
	problems, unsupported []string
}

// extends reports whether ECDS serves the same of the inbounds of a target that differs only in the policies of wholeTypes.
func (p *proxy) extends(t *target) bool {
	if p.proxyless || p.unbuilt != (unbuilt{}) || p.state.Load() == nil {
		return false
	}
	return slices.EqualFunc(t.inbounds, p.target.inbounds, func(a, b inbound) bool { // a forwarder has logs and limits
		return a.permissive == b.permissive && (a.http() || a.logged == b.logged && a.limits == b.limits)
	})
}

// sendsLike reports whether o and before have the same effect on what a proxy without a gateway sends: on handshakes and
// traces.
func (o *observed) sendsLike(before *observed) bool {
	if o.tls.id != before.tls.id || (o.trace == nil) != (before.trace == nil) {
		return false
	}
	return o.trace == nil || *o.trace == *before.trace
}

// observe applies the policies of wholeTypes to a target.
func (t *target) observe(policies []*matching.Policy) error {
	t.observed = observed{}
	if t.proxyless {
		for _, typ := range append(slices.Clone(wholeTypes), resources.TypeMeshCircuitBreaker) {
			for _, p := range policies {
				if p.Resource.Type == typ && p.Enforced() && matching.Selects(p, t.match) {
					t.observed.unsupported = append(t.observed.unsupported, p.KRI.String()+": a gRPC server takes no "+string(typ))
				}
			}
		}
		slices.Sort(t.observed.unsupported)
		return nil
	}
	if err := t.pass(policies); err != nil || len(policies) == 0 {
		return err
	}
	for _, apply := range []func([]*matching.Policy) error{t.secure, t.logInbounds, t.limitInbounds, t.breakInbounds,
		t.patchBy, t.measure, t.trace} {
		if err := apply(policies); err != nil {
			return err
		}
	}
	return nil
}

// setBare keeps the inbounds without the effect of policies.
func (t *target) setBare() {
	t.bare, t.listeners = slices.Clone(t.inbounds), make([]inboundListener, len(t.inbounds))
	for i := range t.bare {
		if len(t.bare[i].logs) > 0 {
			t.bare[i].own, t.inbounds[i].own = &t.bare[i], &t.bare[i]
		}
	}
}

// again returns the target without the effect of policies of wholeTypes.
func (t *target) again() *target {
	next := *t
	next.inbounds, next.observed = slices.Clone(t.bare), observed{}
	return &next
}

// observedPart is the effect of policies of one type on a target, apart from its inbounds. It is immutable.
type observedPart struct {
	metrics, capture   *resource
	collectors, routes []*resource
	problems           []string
	// kept holds its inputs, which other proxies share.
	kept []any
}

// passedKey is everything that the effect of MeshPassthroughs depends on.
type passedKey struct {
	policies string
	capture  capture
	closed   bool
}

// pass applies MeshPassthroughs.
func (t *target) pass(policies []*matching.Policy) error {
	key := passedKey{matching.Selected(t.match, policies, resources.TypeMeshPassthrough), t.capture, t.closedMesh}
	if key.policies == "" && t.capture.port == 0 {
		return nil
	}
	made, err := t.shared.passed.get(key, func() (*observedPart, error) {
		return partOf(&target{match: t.match, capture: t.capture, closedMesh: t.closedMesh}, func(t *target) error {
			return t.passBy(matching.ProxyConf(resources.TypeMeshPassthrough, t.match, policies))
		})
	})
	return t.observed.add(made, err)
}

// measureKey is everything that the effect of MeshMetrics depends on.
type measureKey struct {
	policies  string
	dataplane *resources.Resource
	gateway   *gateway
	measured  measured
	secrets   secretNames
	tls       string
}

// measure applies MeshMetrics.
func (t *target) measure(policies []*matching.Policy) error {
	key := measureKey{matching.Selected(t.match, policies, resources.TypeMeshMetric), t.dataplane, t.gateway, t.measured,
		t.secrets, t.observed.tls.id}
	if key.policies == "" {
		return nil
	}
	made, err := t.shared.measured.get(key, func() (*observedPart, error) {
		of := *t
		of.observed = observed{tls: t.observed.tls}
		return partOf(&of, func(t *target) error {
			return t.measureBy(t.shared.metricRule(key.policies, t.match, policies))
		})
	})
	return t.observed.add(made, err)
}

// partOf returns the effect of apply on a target.
func partOf(t *target, apply func(*target) error) (*observedPart, error) {
	err := apply(t)
	o := &t.observed
	return &observedPart{metrics: o.metrics, capture: o.capture, collectors: o.collectors, routes: o.routes,
		problems: o.problems, kept: o.kept}, err
}

// add adds a part.
func (o *observed) add(part *observedPart, err error) error {
	if err != nil {
		return err
	}
	o.parts = append(o.parts, part)
	o.metrics, o.capture = cmp.Or(part.metrics, o.metrics), cmp.Or(part.capture, o.capture)
	o.routes, o.problems = append(o.routes, part.routes...), append(o.problems, part.problems...)
	o.collect(part.collectors)
	return nil
}

// trace applies MeshTraces.
func (t *target) trace(policies []*matching.Policy) error {
	key := matching.Selected(t.match, policies, resources.TypeMeshTrace)
	if key == "" {
		return nil
	}
	rule, err := t.shared.traceRules.get(key, func() (*matching.ProxyRule, error) {
		rule := matching.ProxyConf(resources.TypeMeshTrace, t.match, policies)
		return &rule, nil
	})
	if err != nil {
		return err
	}
	t.observed.traceRule = rule
	return t.traceBy(rule)
}

// workInWholeLocked marks the proxies that a policy selects or selected.
func (x *Proxies) workInWholeLocked(revision uint64, key resources.Key, r *resources.Resource) {
	m := x.meshes[key.Mesh]
	if m == nil || m.since >= revision {
		return
	}
	selected := map[*proxy]struct{}{}
	old, _ := m.whole.Get(key)
	m.remove(m.whole, key, selected)
	m.patches.forget(key)
	var next *matching.Policy
	if r != nil && isWhole(r) {
		next = x.readPolicy(r)
		m.add(m.whole, next, selected)
	}
	inbounds := key.Type != resources.TypeMeshAccessLog || receives(old) || receives(next)
	for p := range selected {
		if !inbounds && !p.proxyless { // a proxyless one reports that it takes none
			continue
		}
		if key.Type == resources.TypeMeshAccessLog {
			if len(p.logFiles.unopened) > 0 {
				x.network.mark(p, sendingScope) // the logs of outbounds may write to these files again
			}
			p.logFiles.again()
		}
		if key.Type == resources.TypeMeshProxyPatch {
			p.unpatchable.again()
		}
		x.network.mark(p, observedScope)
	}
}

func receives(p *matching.Policy) bool { return p != nil && p.Receives() }

// showObserved shows which policies for the whole proxy have no effect on it, and reports whether that changed.
func (p *proxy) showObserved(next *state) bool {
	if p.target == nil {
		return false
	}
	problems := slices.Concat(p.target.observed.problems, next.patched.problems)
	return p.record.setProblem(problemPolicies, strings.Join(problems, "; "))
}
