package callers

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// inbound is one inbound of a proxy with its rules, which are computed on first use.
type inbound struct {
	dataplane *resources.Resource
	of        *matching.Proxy
	port      *matching.InboundPort
	kri       string

	mu    sync.Mutex
	known bool           // guarded by mu, like everything below
	rules matching.Rules // from the index of the first use: the same for all indexes with the inbound
	// mark is the same for inbounds with the same rules and protocol. passing means that it says so only among inbounds of
	// one mesh: another mesh may have it with other rules.
	mark    string
	passing bool
}

func inboundsOf(p *proxy) []*inbound {
	out := make([]*inbound, len(p.parsed.Inbounds))
	for i := range p.parsed.Inbounds {
		out[i] = newInbound(p, i)
	}
	return out
}

func newInbound(p *proxy, at int) *inbound {
	port := &p.parsed.Inbounds[at]
	return &inbound{dataplane: p.resource, of: p.parsed, port: port,
		kri: resources.KRIOf(p.resource).WithSection(port.Section()).String()}
}

// stillRight returns inbounds whose rules hold after a change of policies: the old ones if none of the policies selects
// them.
func stillRight(p *proxy, old []*inbound, changed []*matching.Policy) []*inbound {
	if len(changed) == 0 {
		return old
	}
	out := old
	for i, in := range old {
		if slices.ContainsFunc(changed, func(one *matching.Policy) bool { return matching.SelectsInbound(one, in.of, in.port) }) {
			if &out[0] == &old[0] {
				out = slices.Clone(old)
			}
			out[i] = newInbound(p, i)
		}
	}
	return out
}

// judgedBy returns the rules of the inbound, their mark, and whether the mark is passing. numbers gives rules numbers.
func (in *inbound) judgedBy(index *matching.Index, numbers *atomic.Uint64) (rules matching.Rules, mark string, passing bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.known {
		in.rules, in.known = index.Inbound(in.of, in.port), true
		in.rules.Warnings = nil
		in.mark, in.passing = markOf(in, in.rules, numbers)
	}
	return in.rules, in.mark, in.passing
}

// markOf builds a mark from the numbers of rules. A rule that cannot hold a number belongs to this inbound alone.
func markOf(in *inbound, rules matching.Rules, numbers *atomic.Uint64) (mark string, passing bool) {
	all := append([]byte(in.port.Protocol), 0)
	for i := range rules.Items {
		made := rules.Items[i].Made
		if made == nil {
			return in.kri, true
		}
		number, _ := made.Once(numbers, func() any { return numbers.Add(1) }).(uint64)
		all = binary.AppendUvarint(all, number)
	}
	return string(all), false
}
