package rbac

import (
	"strings"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// Outlook holds the verdicts of an inbound's rules for one client, as far as they do not depend on the request: as
// enforced, and if every allowWithShadowDeny were a deny.
type Outlook struct {
	Enforced, DryRun Chance
}

// Chance is one verdict for many requests.
type Chance struct {
	// Depends means that some requests may be allowed and others denied, depending on Parts. Otherwise Allowed holds
	// for all of them.
	Depends, Allowed bool
	// Name is Decision.Name: of the policy that decides, or of the first that may decide if it depends. Another policy
	// may decide some of the requests, with the same verdict.
	Name  string
	Parts Parts
}

// Parts is a set of the parts of a request on which a verdict depends.
type Parts uint8

// The parts.
const (
	PartMethod Parts = 1 << iota
	PartPath
	PartSNI
	PartHeaders
)

// Known holds the method and the normalised path of the requests that an Outlook is for. Empty means any.
type Known struct{ Method, Path string }

// Forecaster computes the verdicts of one inbound's rules for many clients. It is safe for concurrent use.
type Forecaster struct {
	rules    []foreseen
	protocol matching.Protocol
	known    Known
}

// NewForecaster prepares rules for requests with the known method and path. Its verdicts agree with Evaluate for all
// requests with a registered method and a clear path, from clients with one identity.
func NewForecaster(rules matching.Rules, protocol matching.Protocol, known Known) *Forecaster {
	f := &Forecaster{rules: make([]foreseen, len(rules.Items)), protocol: protocol, known: known}
	var key any = foreseenFor{protocol}
	for i := range rules.Items {
		r := &rules.Items[i]
		made, _ := r.Made.Once(key, func() any { return foresee(r, protocol) }).(*foreseen)
		f.rules[i] = *made
	}
	return f
}

// Client is a client with one SPIFFE ID.
type Client struct {
	id string
	// refused is the decision that denies the identity before any rule; empty if none does.
	refused string
}

// NewClient returns the client with a SPIFFE ID.
func NewClient(id string) Client {
	switch {
	case strings.Contains(id, ","):
		return Client{id, NameMultipleURISANs}
	case strings.HasPrefix(id, anySpiffeID) && !namesWorkload(id):
		return Client{id, NameMalformedURISAN}
	}
	return Client{id: id}
}

// Of returns the outlook of a client.
func (f *Forecaster) Of(client Client) Outlook {
	if client.refused != "" {
		return Outlook{Chance{Name: client.refused}, Chance{Name: client.refused}}
	}
	var enforced, dryRun tally
	for i := range f.rules {
		r := &f.rules[i]
		if r.closed {
			enforced.deny(r.name, holds{always: true})
			dryRun.deny(r.name, holds{always: true})
			break
		}
		by := f.holds(r, client.id)
		enforced.deny(r.name, by[kindDeny])
		enforced.allow(r.name, by[kindAllow].or(by[kindShadowAllow]))
		dryRun.deny(r.name, by[kindDeny].or(by[kindShadowDeny]))
		dryRun.allow(r.name, by[kindAllow])
	}
	return Outlook{Enforced: enforced.chance(), DryRun: dryRun.chance()}
}

// holds describes how far a list matches the requests of a client: always means that an entry matches all of them, and
// parts are the parts on which other entries depend.
type holds struct {
	always bool
	parts  Parts
}

func (h holds) or(other holds) holds {
	return holds{always: h.always || other.always, parts: h.parts | other.parts}
}

// holds reads the entries of a rule that apply to a client.
func (f *Forecaster) holds(r *foreseen, client string) (out [kinds]holds) {
	for _, list := range [2][]clause{r.exact[client], r.others} {
		for i := range list {
			c := &list[i]
			if !strings.HasPrefix(client, c.prefix) {
				continue
			}
			if parts, may := f.unknownParts(c); may {
				out[c.kind] = out[c.kind].or(holds{always: parts == 0, parts: parts})
			}
		}
	}
	return out
}

// unknownParts returns the unknown parts of an entry, and whether the known ones match.
func (f *Forecaster) unknownParts(c *clause) (parts Parts, may bool) {
	parts = c.parts
	if f.known.Path != "" && parts&PartPath != 0 {
		if !c.hasPath(f.known.Path) {
			return 0, false
		}
		parts &^= PartPath
	}
	if f.known.Method != "" && parts&PartMethod != 0 {
		if !c.hasMethod(f.known.Method) {
			return 0, false
		}
		parts &^= PartMethod
	}
	return parts, true
}

// tally collects the verdicts of rules for a client, in order.
type tally struct {
	// certain is the first rule that denies everything; denier and allower are the first that may deny and allow, or
	// the first that allows everything.
	certain, denier, allower string
	denied, allowed          holds
}

func (t *tally) deny(name string, h holds) {
	if h.always && t.certain == "" {
		t.certain = name
	}
	if h.parts != 0 && t.denier == "" {
		t.denier = name
	}
	t.denied = t.denied.or(h)
}

func (t *tally) allow(name string, h holds) {
	if t.allowed.always {
		return
	}
	if h.always || h.parts != 0 && t.allower == "" {
		t.allower = name
	}
	t.allowed = t.allowed.or(h)
}

func (t *tally) chance() Chance {
	switch {
	case t.certain != "":
		return Chance{Name: t.certain}
	case t.allower == "":
		return Chance{Name: NameDefault}
	case t.denier == "" && t.allowed.always:
		return Chance{Allowed: true, Name: t.allower}
	case t.denier == "":
		return Chance{Depends: true, Name: t.allower, Parts: t.allowed.parts}
	case t.allowed.always:
		return Chance{Depends: true, Name: t.denier, Parts: t.denied.parts}
	}
	return Chance{Depends: true, Name: t.denier, Parts: t.denied.parts | t.allowed.parts}
}
