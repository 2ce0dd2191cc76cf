package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// permissions builds the filters that judge an inbound's clients, as ECDS serves them, and the access that follows the
// one before. The access of an HTTP inbound is the zero value.
func permissions(t *target, in *inbound, policies []*matching.Policy, before access) ([]*resource, access, error) {
	rules, form := matching.Inbound(t.match, in.port, policies), t.form
	if in.plaintext {
		form = rbac.Plaintext
	}
	if in.http() {
		filter, err := newExtension(in.httpFilter(), form.HTTPFilter(rules))
		return []*resource{filter}, access{}, err
	}
	dryRun, enforced := form.NetworkFilters(rules, in.statPrefix())
	first, err := newExtension(in.tcpDryRun(), dryRun)
	if err != nil {
		return nil, access{}, err
	}
	second, err := newExtension(in.tcpFilter(), enforced)
	if err != nil {
		return nil, access{}, err
	}
	if in.plaintext { // whoever is let in, is by these rules only: any change may be a loss
		return []*resource{first, second}, access{filter: second.version, mark: second.version}, nil
	}
	next := before.next(rules, second.version)
	if !in.serverFirst {
		return []*resource{first, second}, next, nil
	}
	judge, unsaid := rbac.HandshakeFilter(rules, in.service.String())
	if unsaid != nil {
		next.closed = fmt.Sprintf("inbound %s denies everybody: %v", in.section, unsaid)
	}
	third, err := newExtension(in.handshake(), judge)
	return []*resource{first, second, third}, next, err
}

// statPrefix returns the prefix of the network filters' statistics; Envoy appends `rbac.` to it.
func (in *inbound) statPrefix() string { return in.name() + "." }
