package matching

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
)

// lastID is the id of the policy read last in this process.
var lastID atomic.Uint64

// Selected identifies the policies of some types that select a proxy. Results computed from these policies alone are
// the same for proxies with equal values. Policies may be of any types and in any order. The value is opaque.
func Selected(proxy *Proxy, policies []*Policy, types ...resources.Type) string {
	return selected(policies, types, func(p *Policy) bool { return Selects(p, proxy) })
}

// SelectedInbound is Selected for one inbound of the proxy. A policy for outgoing traffic only is not among them.
func SelectedInbound(proxy *Proxy, in *InboundPort, policies []*Policy, types ...resources.Type) string {
	return selected(policies, types, func(p *Policy) bool { return !p.onlySends() && SelectsInbound(p, proxy, in) })
}

func selected(policies []*Policy, types []resources.Type, selects func(*Policy) bool) string {
	var space [32]uint64
	ids := space[:0]
	for _, p := range policies {
		if slices.Contains(types, p.Resource.Type) && selects(p) {
			ids = append(ids, p.id)
		}
	}
	slices.Sort(ids)
	var bytes [8 * len(space)]byte
	out := bytes[:0]
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint64(out, id)
	}
	return string(out)
}
