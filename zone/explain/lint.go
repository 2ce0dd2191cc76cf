package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Lint checks the permissions of one mesh, or of all meshes if mesh is empty. Findings are ordered by policy, then in
// the order of Checks. Lint omits findings that depend on proxies that it does not know: a zone knows neither proxies
// nor identities of other zones.
func (w *World) Lint(mesh string) []Finding {
	found, _, _ := w.LintShown(context.Background(), mesh)
	return found
}

// LintShown returns the result of Lint without findings that are about, or name, resources that the caller may not
// read; leftOut counts those. It returns the cause of the end of ctx if that ends first.
func (w *World) LintShown(ctx context.Context, mesh string) (shown []Finding, leftOut int, err error) {
	names := []string{mesh}
	if mesh == "" {
		names = w.Meshes()
	}
	var out []Finding
	for _, name := range names {
		l := &linter{world: w, mesh: w.mesh(name), seen: map[Finding]bool{}, coverage: map[placedKey]*coverage{},
			clear: map[placedKey]bool{}}
		for _, check := range []func(){l.policies, func() { l.shortfalls(name) }, func() { l.effects(name) },
			func() { l.inbounds(ctx, l.tlsPolicies(name)) }, func() { l.identities(name) }} {
			if check(); ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
		}
		for _, f := range l.found {
			if w.may != nil && l.mesh.mentions(f.KRI+" "+f.Message+" "+f.Advice) {
				leftOut++
				continue
			}
			out = append(out, f)
		}
	}
	rank := map[string]int{}
	for i, c := range Checks() {
		rank[c.Name] = i
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.KRI, b.KRI), cmp.Compare(rank[a.Check], rank[b.Check]), cmp.Compare(a.Field, b.Field))
	})
	return out, leftOut, nil
}

// linter collects the findings of one mesh, each once.
type linter struct {
	world *World
	mesh  *mesh
	found []Finding
	seen  map[Finding]bool
	// coverage holds the coverage of each entry on the checked inbounds.
	coverage map[placedKey]*coverage
	// clear holds the entries that were reported for an inbound that accepts plaintext.
	clear map[placedKey]bool
}

func (l *linter) add(f Finding) {
	if !l.seen[f] {
		l.seen[f] = true
		l.found = append(l.found, f)
	}
}

// policies runs the checks of each policy by itself.
func (l *linter) policies() {
	selecting := l.selecting(l.mesh.index)
	for _, p := range l.mesh.policies {
		kri := p.KRI.String()
		if !p.Enforced() {
			l.add(Finding{Warning, CheckNotEnforced, kri, "",
				"the label kuma.io/effect: shadow keeps the policy from being enforced", "remove the label to enforce it"})
			continue
		}
		advice := "rewrite the policy; until then it denies everybody"
		if p.Resource.Type == resources.TypeTrafficTarget {
			advice = "add what is missing, or correct the reference"
		}
		for _, problem := range p.Problems() {
			l.add(Finding{Error, CheckInvalid, kri, problem.Field, problem.Text, advice})
		}
		for i := range p.Rules() {
			l.entries(p, &p.Rules()[i])
		}
		if l.judgesTargets(p) && !selecting[p] {
			l.add(Finding{Warning, CheckSelectsNothing, kri, "", "selects no proxy",
				"compare targetRef with the labels of Dataplanes, or delete the policy"})
		}
	}
}

// selecting returns the policies of an index that select a proxy of the mesh.
func (l *linter) selecting(index *matching.Index) map[*matching.Policy]bool {
	out := map[*matching.Policy]bool{}
	for _, proxy := range l.mesh.proxies {
		for p := range index.Any(proxy) {
			if !out[p] && matching.Selects(p, proxy) {
				out[p] = true
			}
		}
	}
	return out
}

// judgesTargets reports whether all proxies that the policy may select are known.
func (l *linter) judgesTargets(p *matching.Policy) bool {
	zone := l.world.options.Zone
	return len(l.mesh.proxies) > 0 && (zone == "" || l.world.files || p.Resource.Zone() == zone)
}

// effects checks the policies that are not permissions: parts that no proxy enforces, and policies that select nothing.
func (l *linter) effects(mesh string) {
	for _, d := range resources.Descriptors() {
		if d.Policy == nil || d.Type == resources.TypeMeshTrafficPermission {
			continue
		}
		var policies []*matching.Policy
		for r := range l.world.list(d.Type, mesh) {
			if !l.world.hides(r) {
				policies = append(policies, matching.NewPolicy(r, l.world.options.SystemNamespace))
			}
		}
		reached := l.reached(matching.NewIndex(policies))
		for _, p := range policies {
			l.effect(p, reached[p])
		}
	}
}

// reach is the effect of a policy on the proxies that it selects: it has an effect on one of them, or on none, with the
// first reason found. The zero value selects none.
type reach struct {
	selects, has bool
	without      string
}

// reached returns the reach of each policy of an index that selects a proxy of the mesh.
func (l *linter) reached(index *matching.Index) map[*matching.Policy]reach {
	out := map[*matching.Policy]reach{}
	for _, proxy := range l.mesh.proxies {
		for p := range index.Any(proxy) {
			known := out[p]
			if known.has || !matching.Selects(p, proxy) {
				continue
			}
			why := matching.WithoutHTTP(p, proxy)
			out[p] = reach{selects: true, has: why == "" || l.mesh.hidesProxy(proxy), without: cmp.Or(known.without, why)}
		}
	}
	return out
}

func (l *linter) effect(p *matching.Policy, on reach) {
	kri := p.KRI.String()
	if !p.Enforced() {
		l.add(Finding{Warning, CheckNotEnforced, kri, "",
			"the label kuma.io/effect: shadow keeps the policy from being enforced", "remove the label to enforce it"})
		return
	}
	parts, _ := resources.Unenforced(p.Resource)
	for _, part := range parts {
		l.add(Finding{Warning, CheckNotEnforced, kri, "", part,
			"remove it, or do not rely on it: docs/reference/policies.md says what takes effect"})
	}
	switch {
	case on.selects && !on.has:
		l.add(Finding{Warning, CheckNotEnforced, kri, "", on.without,
			"select inbounds that take requests, or declare their protocol"})
	case !on.selects && l.judgesTargets(p):
		l.add(Finding{Warning, CheckSelectsNothing, kri, "", "selects no proxy",
			"compare targetRef with the labels of Dataplanes, or delete the policy"})
	}
}

// shortfalls adds proxies' reports of policies without effect.
func (l *linter) shortfalls(mesh string) {
	if l.world.options.Shortfalls == nil {
		return
	}
	for kri, list := range l.world.options.Shortfalls(mesh) {
		for _, one := range list {
			l.add(Finding{Warning, CheckNotEnforced, kri, "", one.String(),
				"change the policy or the proxy, or select other proxies: docs/reference/policies.md says what takes effect"})
		}
	}
}

var lists = []rbac.Effect{rbac.EffectDeny, rbac.EffectAllowWithShadowDeny, rbac.EffectAllow}

// entries runs the checks of one rule's entries.
func (l *linter) entries(p *matching.Policy, r *matching.Rule) {
	kri := p.KRI.String()
	for _, effect := range lists {
		list := rbac.Entries(r, effect)
		for i := range list {
			m, field := &list[i], fieldOf(r, p, effect, i)
			if text := rbac.Fault(m); text != "" {
				l.add(Finding{Error, CheckInvalid, kri, field, text, "fix the entry: as it is, " + invalidEffect(effect)})
				continue
			}
			if id := m.SpiffeID; effect != rbac.EffectDeny && id != nil && id.Type == resources.MatchPrefix &&
				id.Value == resources.EveryIdentity {
				l.add(Finding{Warning, CheckOpenPrefix, kri, field,
					"the prefix allows every identity of every trust domain", "name a trust domain to mean its identities"})
			}
			if id := m.SpiffeID; effect != rbac.EffectDeny && id != nil && id.Type == resources.MatchPrefix &&
				!strings.HasSuffix(id.Value, "/") {
				l.add(Finding{Warning, CheckOpenPrefix, kri, field,
					"the prefix ends inside a segment: it also allows " + id.Value + "-and-more",
					"end the prefix with a slash"})
			}
			if effect == rbac.EffectDeny && m.Path != nil {
				l.add(pathDeny(kri, field, m.Path))
			}
		}
	}
	l.covered(p, r)
}

func invalidEffect(effect rbac.Effect) string {
	if effect == rbac.EffectDeny {
		return "it denies as if the invalid part were absent"
	}
	return "it allows nothing"
}

// pathDeny reports the spellings that no proxy can distinguish from a path that is not denied (docs/permissions.md,
// "Paths").
func pathDeny(kri, field string, p *resources.PathMatch) Finding {
	path := p.Value
	message := "some applications treat other paths, which are not denied, as this one"
	if p.Type != resources.MatchRegularExpression {
		message += ": " + strings.Join(Lookalikes(strings.TrimSuffix(path, "/")), ", ")
	}
	return Finding{Warning, CheckPathDeny, kri, field, message,
		"allow the intended paths instead, or let the application refuse these"}
}

// Lookalikes returns spellings that some applications read as the path and no proxy can recognise: they pass a deny of
// the path.
func Lookalikes(path string) []string {
	if len(path) < 2 {
		return nil
	}
	return []string{path + ".1", path + "+", "/app" + path}
}
