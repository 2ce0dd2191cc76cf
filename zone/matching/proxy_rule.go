package matching

import (
	"encoding/json"

	"github.com/causeway-mesh/causeway/resources"
)

// ProxyRule is the merged conf of a single-item policy type (MeshMetric, MeshTrace, ...) for a whole proxy.
type ProxyRule struct {
	// Conf is canonical JSON, nil if no policy applies.
	Conf json.RawMessage
	// Origins are the merged policies, in merge order.
	Origins  []Origin
	Warnings []Warning
}

// ProxyPolicies returns the policies whose confs ProxyConf merges, in merge order.
func ProxyPolicies(t resources.Type, proxy *Proxy, policies []*Policy) []*Policy {
	selecting, _ := enforced(t, policies, func(p *Policy) bool { return p.items.single != nil && Selects(p, proxy) })
	return selecting
}

// ConfOfProxy returns the policy's conf for a whole proxy; nil if it has none.
func (p *Policy) ConfOfProxy() json.RawMessage {
	if p.items.single == nil {
		return nil
	}
	return encodeConf(p.items.single.conf)
}

// ProxyConf merges the confs of all policies of type t that select the proxy, in the order of Compare. Policies may be
// of any types and in any order. Source: Kuma's rules for whole proxies (proxyRule).
func ProxyConf(t resources.Type, proxy *Proxy, policies []*Policy) ProxyRule {
	selecting, warnings := enforced(t, policies, func(p *Policy) bool { return Selects(p, proxy) })
	out := ProxyRule{Warnings: warnings}
	var items []*item
	for _, p := range selecting {
		if p.items.single != nil {
			items = append(items, p.items.single)
		}
	}
	if len(items) > 0 {
		out.Conf, out.Origins = mergeItems(items)
	}
	return out
}
