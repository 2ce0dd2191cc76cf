package callers

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// matrix builds the cells of one answer.
type matrix struct {
	mesh    *mesh
	numbers *atomic.Uint64
	known   rbac.Known
	// hidden holds the KRIs of the policies that the reader may not read.
	hidden map[string]bool
	pairs  map[accesslog.Pair]accesslog.Times
	// callers are the columns, and clients the same callers in the form of the rules.
	callers []Caller
	clients []rbac.Client
	// forecasters are indexed by the mark of their rules.
	forecasters map[string]*rbac.Forecaster
	// deciders maps the names of decisions to indexes into names.
	deciders map[string]int
	names    []string
	parts    map[rbac.Parts][]string
	// kept are the outlooks of the same callers, from earlier answers and from this one. Nil keeps nothing.
	kept *page
}

// partProxy stands for differing proxies of a service.
const partProxy = rbac.Parts(1 << 7)

// partNames are the parts as answers spell them.
var partNames = []struct {
	part rbac.Parts
	name string
}{{rbac.PartMethod, "method"}, {rbac.PartPath, "path"}, {rbac.PartSNI, "sni"}, {rbac.PartHeaders, "headers"}, {partProxy, "proxy"}}

// cells returns the cells of one service, without callers that nothing allows and that did not call.
func (x *matrix) cells(r *row) []Cell {
	if len(r.inbounds) == 0 {
		return []Cell{}
	}
	known := x.outlooks(r)
	out := make([]Cell, 0, len(known))
	if len(x.pairs) == 0 {
		for _, one := range known {
			out = append(out, x.cell(one, accesslog.Times{}))
		}
		return out
	}
	for i := range x.callers {
		times := x.seen(r, x.callers[i].SpiffeID)
		switch {
		case len(known) > 0 && known[0].caller == i:
			out = append(out, x.cell(known[0], times))
			known = known[1:]
		case times != (accesslog.Times{}):
			out = append(out, x.cell(outlook{i, rbac.Outlook{Enforced: byDefault, DryRun: byDefault}}, times))
		}
	}
	return out
}

// byDefault is the chance of a caller that nothing allows.
var byDefault = rbac.Chance{Name: rbac.NameDefault}

func (x *matrix) cell(one outlook, times accesslog.Times) Cell {
	e, dry := &one.Enforced, &one.DryRun
	c := Cell{Caller: one.caller, Verdict: verdictOf(e), Policy: x.place(e.Name), DependsOn: x.dependsOn(e.Parts),
		Allowed: times.Allowed, Denied: times.Denied, ShadowDenied: times.ShadowDenied, LastSeen: times.Last.UTC()}
	if shadow := verdictOf(dry); shadow != c.Verdict {
		at := x.place(dry.Name)
		c.Shadow, c.ShadowPolicy = shadow, &at
	}
	return c
}

// outlooks returns what the rules of a service say of its callers, without those that nothing allows.
func (x *matrix) outlooks(r *row) (out []outlook) {
	judging, mark := x.judging(r)
	if out, there := x.kept.of(mark); there {
		return out
	}
	judges := x.judges(judging)
	for i := range x.callers {
		one := together(judges, x.clients[i])
		if e := &one.Enforced; e.Depends || e.Allowed || e.Name != rbac.NameDefault {
			out = append(out, outlook{i, one})
		}
	}
	x.kept.put(mark, out)
	return out
}

// judging returns the inbounds whose rules judge the clients of a service, one of those with the same rules, and a mark
// that is the same for services with the same rules. The mark is empty if it is not known which services these are.
func (x *matrix) judging(r *row) (out []*inbound, mark string) {
	var all []byte
	var marks []string
	passes := false
	for _, in := range r.inbounds {
		_, mark, passing := in.judgedBy(x.mesh.index, x.numbers)
		passes = passes || passing
		if !slices.Contains(marks, mark) {
			out, marks = append(out, in), append(marks, mark)
			all = append(binary.AppendUvarint(all, uint64(len(mark))), mark...)
		}
	}
	if passes {
		return out, ""
	}
	return out, string(all)
}

// judges returns what judges by the rules of the inbounds.
func (x *matrix) judges(inbounds []*inbound) []*rbac.Forecaster {
	out := make([]*rbac.Forecaster, len(inbounds))
	for i, in := range inbounds {
		rules, mark, _ := in.judgedBy(x.mesh.index, x.numbers)
		if x.forecasters[mark] == nil {
			x.forecasters[mark] = rbac.NewForecaster(rules, in.port.Protocol, x.known)
		}
		out[i] = x.forecasters[mark]
	}
	return out
}

// together returns the outlook at all proxies of a service. If they differ, the verdict depends on the proxy.
func together(judges []*rbac.Forecaster, client rbac.Client) (out rbac.Outlook) {
	for i, judge := range judges {
		one := judge.Of(client)
		if i == 0 {
			out = one
			continue
		}
		out.Enforced = either(out.Enforced, one.Enforced)
		out.DryRun = either(out.DryRun, one.DryRun)
	}
	return out
}

func either(a, b rbac.Chance) rbac.Chance {
	if a.Depends == b.Depends && a.Allowed == b.Allowed {
		a.Parts |= b.Parts
		return a
	}
	if !a.Depends && a.Allowed { // the one that may deny is more informative
		a, b = b, a
	}
	return rbac.Chance{Depends: true, Name: a.Name, Parts: a.Parts | b.Parts | partProxy}
}

func (x *matrix) seen(r *row, client string) (out accesslog.Times) {
	if len(x.pairs) == 0 {
		return out
	}
	for _, in := range r.inbounds {
		t, there := x.pairs[accesslog.Pair{Inbound: in.kri, Client: client}]
		if !there {
			continue
		}
		out.Allowed += t.Allowed
		out.Denied += t.Denied
		out.ShadowDenied += t.ShadowDenied
		if t.Last.After(out.Last) {
			out.Last = t.Last
		}
	}
	return out
}

func verdictOf(c *rbac.Chance) string {
	switch {
	case c.Depends:
		return Depends
	case c.Allowed:
		return Allow
	}
	return Deny
}

// place returns the index of a decider in the answer's list. All that the caller may not read share one.
func (x *matrix) place(name string) int {
	if at, there := x.deciders[name]; there {
		return at
	}
	shown := name
	if x.hidden[name] {
		shown = Hidden
	}
	at := slices.Index(x.names, shown)
	if at < 0 {
		at = len(x.names)
		x.names = append(x.names, shown)
	}
	x.deciders[name] = at
	return at
}

func (x *matrix) dependsOn(parts rbac.Parts) []string {
	if parts == 0 {
		return nil
	}
	out, there := x.parts[parts]
	if !there {
		for _, p := range partNames {
			if parts&p.part != 0 {
				out = append(out, p.name)
			}
		}
		x.parts[parts] = out
	}
	return out
}
