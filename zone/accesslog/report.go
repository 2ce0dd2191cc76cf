package accesslog

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// safeAfter is the time without a shadow denial after which enforcing it counts as safe.
const safeAfter = 7 * 24 * time.Hour

// reportQuery selects what to report. Empty fields select everything.
type reportQuery struct {
	mesh, policy string
	now          time.Time
	reader       *api.Reader
}

// shows reports whether the caller may read the resources of all KRIs.
func shows(reader *api.Reader, kris ...string) bool {
	for _, text := range kris {
		if kri, err := resources.ParseKRI(text); reader != nil && (err != nil || !reader.MayKRI(kri)) {
			return false
		}
	}
	return true
}

// unknown returns the reason why there can be no answer: a named resource does not exist, or the caller may not read
// it. It is empty otherwise.
func (q *reportQuery) unknown(snap store.Snapshot) string {
	if q.mesh != "" && snap.Get(resources.Key{Type: resources.TypeMesh, Name: q.mesh}) == nil {
		return "there is no mesh " + q.mesh + " here"
	}
	if q.policy == "" {
		return ""
	}
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission}) {
		if resources.KRIOf(r).String() == q.policy && q.reader.May(r) {
			return ""
		}
	}
	return "there is no MeshTrafficPermission " + q.policy + " here"
}

func (q *reportQuery) selects(policy string) bool {
	if q.policy != "" {
		return policy == q.policy
	}
	kri, err := resources.ParseKRI(policy)
	return q.mesh == "" || err == nil && kri.Mesh == q.mesh
}

// report makes the report of what proxies reported.
func report(seen *observed, q reportQuery) *api.ShadowReport {
	s := seen.journal.read(func(e *Entry) bool { return e.ShadowPolicy != "" && q.selects(e.ShadowPolicy) })
	out := &api.ShadowReport{Items: []api.ShadowDenial{}, Dropped: s.dropped, Since: s.since.UTC(), Readiness: []api.Readiness{}}
	for _, e := range s.entries {
		if !shows(q.reader, e.Inbound, e.ShadowPolicy) {
			out.LeftOut++
			continue
		}
		out.Items = append(out.Items, api.ShadowDenial{
			Client: e.Client, Inbound: e.Inbound, Method: e.Method, PathPrefix: e.PathPrefix, Policy: e.ShadowPolicy,
			Count: e.Count, FirstSeen: e.First.UTC(), LastSeen: e.Last.UTC(),
		})
	}
	for i := range seen.policies {
		if p := &seen.policies[i]; q.selects(p.KRI) {
			if !shows(q.reader, p.KRI) {
				out.LeftOut++
				continue
			}
			out.Readiness = append(out.Readiness, readiness(p, &s, q.now))
		}
	}
	return out
}

// hasShadow reports whether some entry of a permission is enforced only in the shadow.
func hasShadow(r *resources.Resource) bool {
	spec, err := resources.SpecAs[resources.Policy](r)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(resources.PermissionRules(r), func(rule resources.PermissionRule) bool {
		return len(rule.Conf.AllowWithShadowDeny) > 0
	}) || slices.ContainsFunc(spec.From, func(from resources.PolicyFrom) bool {
		var conf resources.PermissionAction
		return json.Unmarshal(from.Default, &conf) == nil && conf.Action == resources.ActionAllowWithShadowDeny
	})
}

// readiness judges one policy.
func readiness(of *shadowPolicy, s *summary, now time.Time) api.Readiness {
	policy, changed := of.KRI, of.Changed
	var count uint64
	last := time.Time{}
	for _, e := range s.entries {
		if e.ShadowPolicy == policy {
			count += e.Count
			if e.Last.After(last) {
				last = e.Last
			}
		}
	}
	watched := now.Sub(later(s.since, changed))
	switch {
	case count > 0 && now.Sub(last) < safeAfter:
		return api.Readiness{Policy: policy, Safe: false, Text: fmt.Sprintf("not safe to enforce: %d would be denied, the last %s ago", count,
			now.Sub(last).Round(time.Second))}
	case now.Sub(later(of.Lost, s.lost(policy))) < safeAfter:
		return api.Readiness{Policy: policy, Safe: false,
			Text: "unknown: some would-deny requests were seen within 7 d and not kept, for lack of room"}
	case watched < safeAfter:
		return api.Readiness{Policy: policy, Safe: false, Text: fmt.Sprintf("unknown yet: no would-deny, but watched for %s of 7 d",
			watched.Round(time.Second))}
	}
	return api.Readiness{Policy: policy, Safe: true, Text: "safe to enforce: no would-deny for 7 d"}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
