package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Explain answers one question with the rules that proxies get and the reference evaluator that their filters agree
// with. Its error is a *QueryError.
func (w *World) Explain(q Query) (*Answer, error) {
	subjects, err := w.subjects(&q)
	if err != nil {
		return nil, err
	}
	var answer *Answer
	var all []ProxyVerdict
	for _, s := range subjects {
		one, err := w.explainOne(&q, s)
		if err != nil {
			return nil, err
		}
		all = append(all, ProxyVerdict{Inbound: one.Inbound, Verdict: one.Verdict, Policy: one.Policy})
		if answer == nil || answer.Allowed() && !one.Allowed() {
			answer = one
		}
	}
	if len(all) > 1 {
		answer.Proxies = all
	}
	answer.LeftOut += q.left
	answer.Warnings = append(answer.Warnings, w.doubts(subjects)...)
	return answer, nil
}

// maxDoubts limits the doubts of an answer.
const maxDoubts = 5

// doubts returns the reasons why proxies may not do what the answer says, and counts those beyond the limit.
func (w *World) doubts(subjects []subject) (all []string) {
	if w.options.Doubts == nil {
		return nil
	}
	for _, s := range subjects {
		for _, one := range w.options.Doubts(s.proxy.Key, s.proxy.Zone) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	if more := len(all) - maxDoubts; more > 0 {
		all = append(all[:maxDoubts], fmt.Sprintf("so it is of %d others", more))
	}
	return all
}

// judgement is one request at one inbound.
type judgement struct {
	mesh    *mesh
	subject subject
	rules   matching.Rules
	request rbac.Request
	verdict rbac.Verdict
}

func (w *World) explainOne(q *Query, s subject) (*Answer, error) {
	req, refused, err := q.request(s.in.Protocol)
	if err != nil {
		return nil, err
	}
	m := w.mesh(q.Mesh)
	j := judgement{mesh: m, subject: s, rules: m.index.Inbound(s.proxy, s.in), request: req}
	a := &Answer{
		Inbound: s.kri().String(), Protocol: string(s.in.Protocol), Matched: []Matched{},
		Request: Request{From: q.From, Method: req.Method, Path: req.Path, SNI: q.SNI, Headers: req.Headers},
	}
	a.Warnings, a.LeftOut = j.warnings(q), m.hiddenIn(&j.rules)
	var guarded []string
	a.Unguarded, guarded = m.patchesOf(s.proxy)
	if refused != "" {
		a.Verdict, a.Policy, a.Rule, a.Request.Path = Deny, nobody, -1, q.Path
		a.Reason = "Envoy answers 400 before it evaluates any rule: " + refused
		return a, nil
	}
	j.verdict = rbac.Evaluate(j.rules, req)
	j.fill(a)
	if len(guarded) > 0 && a.Allowed() {
		a.Warnings = append(a.Warnings, fmt.Sprintf("permissions allow it; whether the proxy refuses it by a patch is unknown: %s",
			strings.Join(guarded, ", ")))
	}
	return a, nil
}

// fill writes the verdict and its reasons.
func (j *judgement) fill(a *Answer) {
	d := j.verdict.Enforced
	a.Verdict, a.Policy, a.Rule = verdictOf(d), j.mesh.policyName(d.Name), -1
	if d.Rule >= 0 && a.Policy != Hidden {
		a.Rule, a.Field = j.rules.Items[d.Rule].Index, j.field(d.Rule, d.Effect, d.Entry)
	}
	a.Reason = j.reason(a)
	if dry := j.verdict.DryRun; dry.Allowed != d.Allowed {
		a.Shadow = &Shadow{Verdict: verdictOf(dry), Policy: j.mesh.policyName(dry.Name)}
	}
	for _, m := range rbac.Matching(j.rules, j.request) {
		if !j.mesh.hidden.kris[j.rules.Items[m.Rule].Origin.String()] {
			a.Matched = append(a.Matched, j.matched(m, d))
		}
	}
	if a.LeftOut == 0 { // these hints name every policy that contributes to the verdict
		a.Would = j.would()
	}
}

func verdictOf(d rbac.Decision) string {
	if d.Allowed {
		return Allow
	}
	return Deny
}

func (j *judgement) matched(m rbac.Match, d rbac.Decision) Matched {
	r := &j.rules.Items[m.Rule]
	out := Matched{
		Policy: r.Origin.String(), Rule: r.Index, Action: string(m.Effect), Field: j.field(m.Rule, m.Effect, m.Entry),
		Decides: d.Rule == m.Rule && d.Effect == m.Effect && d.Entry == m.Entry,
	}
	if m.Effect == rbac.EffectNone {
		out.Action = Deny
		return out
	}
	out.Entry = &rbac.Entries(r, m.Effect)[m.Entry]
	for _, h := range r.Headers {
		if out.Headers == nil {
			out.Headers = map[string]string{}
		}
		out.Headers[h.Name] = h.Expression
	}
	return out
}

// field returns the path of an entry in its policy's explicit form.
func (j *judgement) field(rule int, effect rbac.Effect, entry int) string {
	return fieldOf(&j.rules.Items[rule], j.mesh.byKRI[j.rules.Items[rule].Origin], effect, entry)
}

// fieldOf returns the path of an entry. Rules from the older form, `from`, are numbered after a policy's own rules.
func fieldOf(r *matching.Rule, p *matching.Policy, effect rbac.Effect, entry int) string {
	at := fmt.Sprintf("rules[%d]", r.Index)
	if p != nil && p.Resource.Type == resources.TypeTrafficTarget {
		return at
	}
	if p != nil {
		if spec, err := resources.SpecAs[resources.Policy](p.Resource); err == nil {
			if own := len(spec.EffectiveRules()); r.Index >= own && r.Index-own < len(spec.From) {
				return fmt.Sprintf("from[%d].default", r.Index-own)
			}
		}
	}
	if effect == rbac.EffectNone {
		return at
	}
	return fmt.Sprintf("%s.default.%s[%d]", at, effect, entry)
}

func (j *judgement) reason(a *Answer) string {
	d := j.verdict.Enforced
	switch {
	case a.Policy == Hidden:
		return "a hidden policy decides: the caller may not read it"
	case d.Name == rbac.NameMalformedURISAN || d.Name == rbac.NameMultipleURISANs:
		return "a certificate must name exactly one SPIFFE ID, with a path; others are denied before any rule is evaluated"
	case d.Rule < 0 && len(j.rules.Items) == 0:
		return "no policy applies to this inbound, and the default is to deny"
	case d.Rule < 0:
		return "no allow entry matches, and the default is to deny"
	case d.Effect == rbac.EffectNone:
		return fmt.Sprintf("%s of %s denies everybody", a.Field, a.Policy)
	case !d.Allowed:
		return fmt.Sprintf("%s of %s matches, and a deny wins over every allow", a.Field, a.Policy)
	}
	return fmt.Sprintf("%s of %s matches, and no deny does", a.Field, a.Policy)
}

// warnings returns those about the inbound's rules, and those about a client identity that no certificate has or that
// the mesh does not trust.
func (j *judgement) warnings(q *Query) []string {
	var out []string
	id, err := spiffeid.FromString(q.From)
	switch {
	case err != nil:
		out = append(out, fmt.Sprintf("no certificate has the SPIFFE ID %q: %v", q.From, err))
	case j.mesh.domains != nil && !j.mesh.domains[id.TrustDomain().Name()]:
		out = append(out, fmt.Sprintf("mesh %s has no MeshTrust for the trust domain %s: the client's handshake fails before rules are asked", q.Mesh, id.TrustDomain().Name()))
	}
	if j.subject.in.Protocol != matching.HTTP && (q.Method != "" || q.Path != "") {
		out = append(out, fmt.Sprintf("inbound %s is TCP, so method and path are not seen there: set its protocol to http, http2 or grpc", j.subject.in.Section()))
	}
	if j.mesh.hiddenIn(&j.rules) == 0 { // they concern all rules together
		out = append(out, rbac.HandshakeWarnings(j.rules, j.subject.in)...)
	}
	for _, list := range [][]matching.Warning{j.rules.Warnings, rbac.Warnings(j.rules, j.subject.in.Protocol)} {
		for _, w := range list {
			if !j.mesh.hidden.kris[w.Policy.String()] && !j.mesh.mentions(w.Text) {
				out = append(out, w.String())
			}
		}
	}
	return out
}
