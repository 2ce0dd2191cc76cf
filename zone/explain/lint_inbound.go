package explain

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// inbounds runs the checks that need real inbounds, until ctx ends. Inbounds with the same policies are checked once.
func (l *linter) inbounds(ctx context.Context, tls []*matching.Policy) {
	open, closed := map[*matching.Policy]bool{}, map[*matching.Policy]string{}
	done := map[string]bool{}
	numbers := map[*matching.Policy]uint64{}
	for i, p := range l.mesh.policies {
		numbers[p] = uint64(i)
	}
	var group []byte
	for _, proxy := range l.mesh.proxies {
		if ctx.Err() != nil {
			return
		}
		candidates := l.mesh.index.Candidates(proxy)
		for i := range proxy.Inbounds {
			in := &proxy.Inbounds[i]
			l.serverFirst(subject{proxy, in}, candidates)
			l.inTheClear(subject{proxy, in}, candidates, tls)
			group = append(append(group[:0], in.Protocol...), 0)
			for _, p := range candidates {
				if matching.SelectsInbound(p, proxy, in) {
					group = binary.AppendUvarint(group, numbers[p])
				}
			}
			if done[string(group)] {
				continue
			}
			done[string(group)] = true
			l.inbound(subject{proxy, in}, matching.Inbound(proxy, in, candidates), open, closed)
		}
	}
	l.crossed()
	for _, p := range l.mesh.policies {
		if where := closed[p]; where != "" && !open[p] {
			l.add(Finding{Warning, CheckDenyOnly, p.KRI.String(), "",
				"denies where nobody is allowed anyway, for example on " + where,
				"allow somebody, here or in another policy; the default is to deny"})
		}
	}
}

// inbound checks the rules of one inbound. It records in open the policies of an inbound with an allow entry, and in
// closed those with a deny entry on an inbound without one.
func (l *linter) inbound(s subject, rules matching.Rules, open map[*matching.Policy]bool,
	closed map[*matching.Policy]string) {
	l.cover(rules)
	allowing := slices.ContainsFunc(rules.Items,
		func(r matching.Rule) bool { return len(r.Conf.Allow)+len(r.Conf.AllowWithShadowDeny) > 0 })
	for _, w := range rules.Warnings {
		if p := l.mesh.byKRI[w.Policy]; p != nil && p.Enforced() && !slices.Contains(p.Problems(), w) {
			l.add(Finding{Warning, CheckNotEnforced, w.Policy.String(), w.Field, w.Text,
				"write permissions under rules, with SPIFFE IDs"})
		}
	}
	for i := range rules.Items {
		r := &rules.Items[i]
		p := l.mesh.byKRI[r.Origin]
		if p == nil {
			continue
		}
		if allowing {
			open[p] = true
		} else if len(r.Conf.Deny) > 0 {
			closed[p] = cmp.Or(closed[p], s.kri().String())
		}
		if s.in.Protocol != matching.HTTP {
			l.httpOnTCP(p, r)
		}
	}
}

// serverFirst reports on the Dataplane, not on a policy.
func (l *linter) serverFirst(s subject, candidates []*matching.Policy) {
	if s.in.Protocol != matching.TCP || !s.in.ServerFirst() {
		return
	}
	for i, text := range rbac.HandshakeWarnings(matching.Inbound(s.proxy, s.in, candidates), s.in) {
		severity, advice := Warning, "remove the tag "+resources.TagServerFirst+
			" unless clients of this application wait for it to speak"
		if i > 0 {
			severity, advice = Error, "until then everybody is denied"
		}
		l.add(Finding{severity, CheckServerFirst, s.kri().String(), "", text, advice})
	}
}

// httpOnTCP reports entries that a TCP inbound cannot judge, because it has neither path nor method
// (docs/permissions.md, "TCP").
func (l *linter) httpOnTCP(p *matching.Policy, r *matching.Rule) {
	for _, effect := range lists {
		entries := rbac.Entries(r, effect)
		for i := range entries {
			if !entries[i].NeedsHTTP() {
				continue
			}
			does := "allows nothing there"
			if effect == rbac.EffectDeny {
				does = "denies without them there"
			}
			l.add(Finding{Warning, CheckHTTPOnTCP, p.KRI.String(), fieldOf(r, p, effect, i),
				fmt.Sprintf("path and method cannot be seen on TCP inbounds, so the entry %s", does),
				"select HTTP inbounds only by sectionName, or declare the protocol of the inbound: http, http2 or grpc"})
		}
	}
}

// identities looks for SPIFFE IDs of known trust domains that no known proxy has.
func (l *linter) identities(mesh string) {
	known := map[string]bool{}
	domains := map[string]bool{}
	zones := map[string]*identity.Assignments{}
	for r := range l.world.list(resources.TypeDataplane, mesh) {
		if zones[r.Zone()] == nil {
			zones[r.Zone()] = identity.AssignmentsOf(l.world.list(resources.TypeMeshIdentity, mesh), mesh, r.Zone(), nil)
		}
		if who, err := zones[r.Zone()].Of(r); err == nil {
			known[who.ID.String()], domains[who.ID.TrustDomain().Name()] = true, true
		}
	}
	for _, p := range l.mesh.policies {
		for i := range p.Rules() {
			r := &p.Rules()[i]
			for _, e := range placedOf(p, r) {
				id := e.match.SpiffeID
				if id == nil || !domains[domainOf(id.Value)] || hasIdentity(known, id) {
					continue
				}
				l.add(Finding{Warning, CheckUnknownIdentity, p.KRI.String(), e.field,
					"no proxy has an identity that is or begins with " + id.Value,
					"compare with the namespaces, service accounts and workloads of Dataplanes"})
			}
		}
	}
}

// domainOf returns the trust domain that an identity or a prefix names in full, or "".
func domainOf(value string) string {
	domain, _, complete := strings.Cut(strings.TrimPrefix(value, "spiffe://"), "/")
	if _, err := spiffeid.TrustDomainFromString(domain); err != nil || !complete {
		return ""
	}
	return domain
}

func hasIdentity(known map[string]bool, m *resources.SpiffeIDMatch) bool {
	if m.Type == resources.MatchExact {
		return known[m.Value]
	}
	for id := range known {
		if strings.HasPrefix(id, m.Value) {
			return true
		}
	}
	return false
}
