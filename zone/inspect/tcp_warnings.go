package inspect

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// tcpWarnings reports the entries of a permission that need a request but apply to a TCP inbound, which has none. Each
// warning names the first such inbound among the Dataplanes that this server knows.
func (h *handlers) tcpWarnings(after store.Snapshot, policy *matching.Policy, reader *api.Reader) []string {
	r := policy.Resource
	if r.Type != resources.TypeMeshTrafficPermission {
		return nil
	}
	if !policy.Enforced() || !needsHTTP(policy) {
		return nil
	}
	services := slices.Collect(after.List(store.Query{Type: resources.TypeMeshService, Mesh: r.Mesh}))
	for dataplane := range after.List(store.Query{Type: resources.TypeDataplane, Mesh: r.Mesh}) {
		proxy, err := matching.NewProxy(dataplane)
		if err != nil || !reader.May(dataplane) || !matching.Selects(policy, proxy) ||
			!h.views.config.crosses(r, proxy.Zone) {
			continue
		}
		proxy = proxy.WithServices(services)
		for i := range proxy.Inbounds {
			in := &proxy.Inbounds[i]
			if in.Protocol == matching.TCP && matching.SelectsInbound(policy, proxy, in) {
				return textsOnTCP(policy, proxy, in, resources.KRIOf(dataplane).WithSection(in.Section()))
			}
		}
	}
	return nil
}

func needsHTTP(p *matching.Policy) bool {
	return slices.ContainsFunc(p.Rules(), func(r matching.Rule) bool {
		return slices.ContainsFunc(slices.Concat(r.Conf.Deny, r.Conf.AllowWithShadowDeny, r.Conf.Allow),
			func(m resources.PermissionMatch) bool { return m.NeedsHTTP() })
	})
}

// textsOnTCP returns the warnings that are due to the protocol: those that HTTP would not have.
func textsOnTCP(p *matching.Policy, proxy *matching.Proxy, in *matching.InboundPort, at resources.KRI) []string {
	rules := matching.Inbound(proxy, in, []*matching.Policy{p})
	elsewhere := rbac.Warnings(rules, matching.HTTP)
	var out []string
	for _, w := range rbac.Warnings(rules, matching.TCP) {
		if !slices.Contains(elsewhere, w) {
			out = append(out, fmt.Sprintf("%s: %s, for example on %s", w.Field, w.Text, at))
		}
	}
	return out
}
