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

// ProxyConfs returns the confs that ProxyConf merges, each by itself with its one origin, in merge order.
func ProxyConfs(t resources.Type, proxy *Proxy, policies []*Policy) []ProxyRule {
	selecting, _ := enforced(t, policies, func(p *Policy) bool { return Selects(p, proxy) })
	var out []ProxyRule
	for _, p := range selecting {
		if one := p.items.single; one != nil {
			out = append(out, ProxyRule{Conf: encodeConf(one.conf), Origins: []Origin{one.origin()}})
		}
	}
	return out
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
