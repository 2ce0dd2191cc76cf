package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// permitted holds the result of an inbound's permissions: the filters that judge its clients, as ECDS serves them. It
// is immutable.
type permitted struct {
	filters []*resource
	rules   matching.Rules
	// closed is access.closed.
	closed string
}

// permittedKey is everything that it depends on.
type permittedKey struct {
	policies, section            string
	port                         uint32
	form                         rbac.Form
	http, plaintext, serverFirst bool
	// service is the application's address, if the application speaks first.
	service endpoint
}

// permissions returns the filters that judge the clients of an inbound.
func (t *target) permissions(in *inbound, policies []*matching.Policy) (*permitted, error) {
	key := permittedKey{section: in.section, port: in.port.Port, form: t.form, http: in.http(), plaintext: in.plaintext,
		serverFirst: in.serverFirst, policies: matching.SelectedInbound(t.match, in.port, policies,
			resources.TypeMeshTrafficPermission, resources.TypeTrafficTarget)}
	if in.serverFirst {
		key.service = in.service
	}
	return t.shared.permitted.get(key, func() (*permitted, error) { return newPermitted(t, in, policies) })
}

func newPermitted(t *target, in *inbound, policies []*matching.Policy) (*permitted, error) {
	out := &permitted{rules: matching.Inbound(t.match, in.port, policies)}
	form := t.form
	if in.plaintext {
		form = rbac.Plaintext
	}
	if in.http() {
		return out, out.add(in.httpFilter(), form.HTTPFilter(out.rules))
	}
	dryRun, enforced := form.NetworkFilters(out.rules, in.statPrefix())
	if err := out.add(in.tcpDryRun(), dryRun); err != nil {
		return nil, err
	}
	if err := out.add(in.tcpFilter(), enforced); err != nil || in.plaintext || !in.serverFirst {
		return out, err
	}
	judge, unsupported := rbac.HandshakeFilter(out.rules, in.service.String())
	if unsupported != nil {
		out.closed = fmt.Sprintf("inbound %s denies everybody: %v", in.section, unsupported)
	}
	return out, out.add(in.handshake(), judge)
}

func (p *permitted) add(name string, filter message) error {
	made, err := newExtension(name, filter)
	p.filters = append(p.filters, made)
	return err
}

// access returns the access to a TCP inbound that succeeds the given one.
func (p *permitted) access(in *inbound, before access) access {
	enforced := p.filters[1].version
	if in.plaintext { // only these rules admit a client: any change may be a loss
		return access{filter: enforced, mark: enforced}
	}
	next := before.next(p.rules, enforced)
	if p.closed != "" {
		next.closed = p.closed
	}
	return next
}

// statPrefix returns the prefix of the network filters' statistics; Envoy appends `rbac.` to it.
func (in *inbound) statPrefix() string { return in.name() + "." }
