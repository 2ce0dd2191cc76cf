package explain

import (
	"encoding/json"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// tlsPolicies returns the MeshTLSs of a mesh.
func (l *linter) tlsPolicies(mesh string) (out []*matching.Policy) {
	for r := range l.world.list(resources.TypeMeshTLS, mesh) {
		out = append(out, matching.NewPolicy(r, l.world.options.SystemNamespace))
	}
	return out
}

// inTheClear reports the entries for every identity on an inbound that accepts plaintext: they admit clients of which
// nothing is known (docs/permissions.md, "Clients in the clear"). Each entry is reported for its first such inbound.
func (l *linter) inTheClear(s subject, candidates, tls []*matching.Policy) {
	origin := l.permissive(s, tls)
	if origin == "" || l.mesh.hidesProxy(s.proxy) {
		return
	}
	rules := matching.Inbound(s.proxy, s.in, candidates)
	for i := range rules.Items {
		r := &rules.Items[i]
		p := l.mesh.byKRI[r.Origin]
		if p == nil {
			continue
		}
		for _, e := range placedOf(p, r) {
			if e.effect == rbac.EffectDeny || !rbac.ForEverybody(e.match) || l.clear[e.key()] ||
				e.match.NeedsHTTP() && s.in.Protocol != matching.HTTP {
				continue
			}
			l.clear[e.key()] = true
			l.add(Finding{Warning, CheckInTheClear, p.KRI.String(), e.field,
				"also allows clients without TLS, whoever they are, for example on " + s.kri().String() + ": " + origin +
					" has the mode " + resources.TLSPermissive,
				"name the intended identities, or set the mode " + resources.TLSStrict})
		}
	}
}

// permissive returns the KRI of the MeshTLS that makes an inbound accept plaintext; empty if there is none, or a hidden
// one contributes.
func (l *linter) permissive(s subject, tls []*matching.Policy) string {
	if s.in.Protocol == matching.TCP && s.in.ServerFirst() {
		return "" // it accepts mutual TLS only
	}
	confs := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshTLS, Proxy: s.proxy, Inbound: s.in,
		Policies: tls})
	for i := range confs.Items {
		item := &confs.Items[i]
		conf := new(resources.TLSConf)
		if item.Match != nil || json.Unmarshal(item.Conf, conf) != nil {
			continue
		}
		if conf.Mode == nil || *conf.Mode != resources.TLSPermissive ||
			slices.ContainsFunc(item.Origins, func(o matching.Origin) bool { return l.world.hides(o.Policy.Resource) }) {
			return ""
		}
		return item.Origins[len(item.Origins)-1].KRI().String()
	}
	return ""
}
