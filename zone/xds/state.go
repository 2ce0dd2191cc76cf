package xds

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// state holds what one proxy should have, except secrets. It is immutable.
type state struct {
	// sets is built from all policies except MeshProxyPatches; served returns what the proxy is sent.
	sets [kinds]set
	// patched is the effect of MeshProxyPatches. publishLocked sets it.
	patched patched
	// receiving holds the clusters and listeners of the inbounds, and their filters. sending is nil without outbounds.
	receiving [kinds]set
	sending   *sending
	// accesses holds the accesses of the inbounds.
	accesses accesses
	// unrouted names parts of policies on HTTP inbounds without effect. routed means that there are such policies.
	unrouted []string
	routed   bool
	// unrated names connection limits without effect.
	unrated []string
	// proxyless means that the state is for a gRPC program. unsupported names the settings for its inbounds and their
	// permissions that the program does not support, unsent those for its outbounds.
	proxyless           bool
	unsupported, unsent []string
	// secrets holds the names of the secrets that the listeners and clusters use.
	secrets secretNames
	// made holds the inputs of the inbounds' filters, madeRoutes those of their routes. madeListeners are among the
	// listeners.
	made, madeRoutes []any
	madeListeners    *fixedListeners
}

// with returns s with the resources of its outbounds replaced. Resources equal to those of old stay shared.
func (s *state) with(out *sending, old *state) *state {
	next := *s
	next.send(out, old)
	return &next
}

// send is with for a state that nobody has yet.
func (s *state) send(out *sending, old *state) {
	s.sets, s.sending, s.unsent, s.patched = s.receiving, out, nil, patched{}
	if out == nil {
		return
	}
	sets := out.sets
	switch {
	case s.proxyless:
		sets, s.unsent = forGRPC(out.sets)
	case s.secrets.spire:
		sets, s.unsent = forSpire(out.sets, &s.secrets)
		sets[kindSecret] = out.certificates
	}
	for k := range kinds {
		if len(sets[k]) == 0 {
			continue
		}
		if old != nil && out == old.sending && !s.proxyless && !s.secrets.spire && slices.Equal(s.receiving[k], old.receiving[k]) {
			s.sets[k] = old.sets[k]
			continue
		}
		s.sets[k] = newSet(slices.Concat(s.receiving[k], sets[k])...)
		if old != nil {
			s.sets[k] = s.sets[k].keepOf(old.sets[k])
		}
	}
}

// changed lists the kinds in which s and o differ, in the order in which the proxy should get them: new resources
// before their references, removed ones after. A filter chain is replaced after its filters. Otherwise the old filters
// could judge a client in the new chain, and it would stay there.
func (s *state) changed(o *state) []kind {
	var out []kind
	for k := range kinds {
		if o == nil || !s.served(k).equal(o.served(k)) {
			out = append(out, k)
		}
	}
	if o != nil && s.accesses.replaced(o.accesses) {
		out = append(without(out, kindListener), kindListener)
	}
	if o != nil && len(s.served(kindCluster)) < len(o.served(kindCluster)) {
		out = append(without(out, kindCluster), kindCluster)
	}
	return out
}

func without(ks []kind, k kind) []kind {
	var out []kind
	for _, x := range ks {
		if x != k {
			out = append(out, x)
		}
	}
	return out
}

// build builds the state of the inbounds, as buildAll does, for any kind of proxy.
func build(t *target, policies []*matching.Policy, old *state, before accesses) (*state, error) {
	if t.proxyless {
		return buildProxyless(t, policies, old)
	}
	return buildAll(t, policies, old, before)
}

// buildAll builds the state of the inbounds. Unchanged resources are shared with old; before holds the Dataplane's last
// accesses.
func buildAll(t *target, policies []*matching.Policy, old *state, before accesses) (*state, error) {
	s := &state{secrets: t.secrets}
	if err := s.buildExtensions(t, policies, old, before); err != nil {
		return nil, err
	}
	return s, s.buildBeside(t, policies, old)
}

// buildObserved builds the state that succeeds old after a change only of policies of wholeTypes that act on nothing that
// ECDS serves.
func buildObserved(t *target, policies []*matching.Policy, old *state) (*state, error) {
	s := &state{secrets: t.secrets, accesses: old.accesses, unrated: old.unrated, made: old.made}
	s.receiving[kindExtension] = old.receiving[kindExtension]
	return s, s.buildBeside(t, policies, old)
}

// buildBeside builds what a state has of the inbounds beside extensions.
func (s *state) buildBeside(t *target, policies []*matching.Policy, old *state) error {
	for i := range t.inbounds {
		cluster, err := t.behind(&t.inbounds[i])
		if err != nil {
			return fmt.Errorf("inbound %q: %w", t.inbounds[i].section, err)
		}
		s.receiving[kindCluster] = append(s.receiving[kindCluster], cluster)
	}
	s.receiving[kindCluster] = newSet(append(s.receiving[kindCluster], t.observed.collectors...)...)
	if old != nil {
		s.receiving[kindCluster] = s.receiving[kindCluster].keepOf(old.sets[kindCluster])
	}
	if err := s.buildListeners(t, old); err != nil {
		return err
	}
	if err := s.buildRoutes(t, policies, old); err != nil {
		return err
	}
	s.routed = routed(policies)
	s.sets = s.receiving
	return nil
}

// buildReceived builds the state that succeeds old after a change only of policies for inbound traffic. Only filters,
// routes and the filter chains of clients that lost access differ.
func buildReceived(t *target, policies []*matching.Policy, old *state) (*state, error) {
	if t.proxyless {
		s, err := buildProxyless(t, policies, old)
		if err != nil {
			return nil, err
		}
		s.send(old.sending, old)
		return s, nil
	}
	s := &state{sets: old.sets, receiving: old.receiving, sending: old.sending, secrets: t.secrets,
		unrouted: old.unrouted, routed: routed(policies), madeRoutes: old.madeRoutes,
		madeListeners: old.madeListeners}
	if err := s.buildExtensions(t, policies, old, old.accesses); err != nil {
		return nil, err
	}
	replaced, routed := s.accesses.replaced(old.accesses), s.routed || old.routed
	if !replaced && !routed {
		s.sets[kindExtension] = s.receiving[kindExtension]
		if old.sending != nil && len(old.sending.sets[kindExtension]) > 0 {
			s.sets[kindExtension] = newSet(slices.Concat(s.sets[kindExtension], old.sending.sets[kindExtension])...)
		}
		return s, nil
	}
	if replaced {
		s.receiving[kindListener] = nil
		if err := s.buildListeners(t, old); err != nil {
			return nil, err
		}
	}
	if routed {
		if err := s.buildRoutes(t, policies, old); err != nil {
			return nil, err
		}
	}
	s.send(old.sending, old)
	return s, nil
}

func (s *state) buildListeners(t *target, old *state) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		listener, err := t.listener(i, s.accesses)
		if err != nil {
			return fmt.Errorf("inbound %q: %w", in.section, err)
		}
		s.receiving[kindListener] = append(s.receiving[kindListener], listener)
	}
	fixed, err := t.fixedListeners()
	if err != nil {
		return err
	}
	s.madeListeners = fixed
	for _, listener := range []*resource{t.observed.metrics, t.observed.capture, fixed.captured, fixed.admin} {
		if listener != nil {
			s.receiving[kindListener] = append(s.receiving[kindListener], listener)
		}
	}
	s.receiving[kindListener] = newSet(s.receiving[kindListener]...)
	if old != nil {
		s.receiving[kindListener] = s.receiving[kindListener].keepOf(old.sets[kindListener])
	}
	return nil
}

func (s *state) buildExtensions(t *target, policies []*matching.Policy, old *state, before accesses) error {
	var out []*resource
	s.accesses, s.unrated, s.made = accesses{}, nil, nil
	for _, in := range slices.Concat(t.inbounds, t.egresses) {
		if !in.egress {
			limiter, err := t.connectionRate(&in, policies)
			if err != nil {
				return fmt.Errorf("inbound %q: %w", in.section, err)
			}
			if limiter.problem != "" {
				s.unrated = append(s.unrated, limiter.problem)
			}
			s.made = append(s.made, limiter)
			out = append(out, limiter.filter)
		}
		for _, side := range in.judged() {
			made, err := t.permissions(&side, policies)
			if err != nil {
				return fmt.Errorf("inbound %q: %w", side.section, err)
			}
			if !side.http() {
				s.accesses[side.accessKey()] = made.access(&side, before[side.accessKey()])
			}
			s.made = append(s.made, made)
			out = append(out, made.filters...)
			if in.egress || side.http() {
				continue
			}
			list, err := side.tcpFilters(t)
			if err != nil {
				return fmt.Errorf("inbound %q: %w", side.section, err)
			}
			s.made = append(s.made, list)
			out = append(out, list.forwarder)
		}
	}
	s.receiving[kindExtension] = newSet(out...)
	if old != nil {
		s.receiving[kindExtension] = s.receiving[kindExtension].keepOf(old.sets[kindExtension])
	}
	return nil
}
