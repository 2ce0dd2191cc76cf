package inspect

import (
	"encoding/json"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// ProxyRules is the answer to `_rules`: the result of all policies for one proxy, as in Kuma's inspect API. Source:
// seed 002, "Inspect API".
type ProxyRules struct {
	HTTPMatches []HTTPMatch `json:"httpMatches"`
	Resource    Meta        `json:"resource"`
	// Rules has one entry for each type with rules, in the order in which types are evaluated.
	Rules []TypeRules `json:"rules"`
	// LeftOut counts the policies and services that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// TypeRules is the result of the policies of one type.
type TypeRules struct {
	Type            resources.Type `json:"type"`
	ProxyRule       *ProxyRule     `json:"proxyRule,omitempty"`
	ToRules         []TagRule      `json:"toRules"`
	ToResourceRules []ResourceRule `json:"toResourceRules"`
	FromRules       []FromRules    `json:"fromRules"`
	InboundRules    []InboundRules `json:"inboundRules"`
	Warnings        []string       `json:"warnings"`
}

// ProxyRule is the conf of the whole proxy.
type ProxyRule struct {
	Conf   json.RawMessage `json:"conf"`
	Origin []Origin        `json:"origin"`
}

// TagRule is the conf for peers with certain tags.
type TagRule struct {
	Conf     json.RawMessage `json:"conf"`
	Matchers []TagMatcher    `json:"matchers"`
	Origin   []LegacyOrigin  `json:"origin"`
}

// TagMatcher is one condition on a tag.
type TagMatcher struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Not   bool   `json:"not"`
}

// ResourceRule is the conf for traffic to one service or route, to one section of either, or, for the Mesh, to all
// others.
type ResourceRule struct {
	// Conf is the merged conf.
	Conf                json.RawMessage `json:"conf"`
	Origin              []Origin        `json:"origin"`
	ResourceMeta        Meta            `json:"resourceMeta"`
	ResourceSectionName string          `json:"resourceSectionName"`
	KRI                 string          `json:"kri,omitempty"`
	// Also are the KRIs of other destinations with the same conf and origin, maxAlso at most, and AlsoTotal counts all of
	// them. They are absent unless the request asks for groups.
	Also      []string `json:"also,omitempty"`
	AlsoTotal int      `json:"alsoTotal,omitempty"`
}

// InboundMeta names an inbound.
type InboundMeta struct {
	Name string            `json:"name,omitempty"`
	Port uint32            `json:"port"`
	Tags map[string]string `json:"tags"`
	KRI  string            `json:"kri"`
}

// FromRules are the confs for the clients of one inbound, by their tags.
type FromRules struct {
	Inbound InboundMeta `json:"inbound"`
	Rules   []TagRule   `json:"rules"`
}

// InboundRules holds the rules of one inbound, in order.
type InboundRules struct {
	Inbound InboundMeta   `json:"inbound"`
	Rules   []InboundRule `json:"rules"`
}

// InboundRule is the conf for the requests of one match; for permissions, one rule.
type InboundRule struct {
	Conf     []json.RawMessage `json:"conf"`
	Match    json.RawMessage   `json:"match,omitempty"`
	Origin   []Origin          `json:"origin"`
	Position int               `json:"position"`
	// Headers are the expressions, by header, that a TrafficTarget's requests must match too.
	Headers map[string]string `json:"headers,omitempty"`
	Closed  bool              `json:"closed,omitempty"`
}

func (h *handlers) rules(w http.ResponseWriter, r *http.Request) error {
	grouped, err := wantsGroups(r)
	if err != nil {
		return err
	}
	a, err := h.proxyOf(r)
	if err != nil {
		return err
	}
	a.grouped = grouped
	answer := ProxyRules{Resource: metaOf(a.resource), Rules: []TypeRules{}}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil && !isPermission(d.Type) {
			continue
		}
		if rules := a.typeRules(d); rules.hasContent() {
			answer.Rules = append(answer.Rules, rules)
		}
	}
	answer.HTTPMatches, answer.LeftOut = httpMatches(answer.Rules), a.left.count()
	return api.WriteLongJSON(w, answer)
}

func (t *TypeRules) hasContent() bool {
	return t.ProxyRule != nil || len(t.ToRules)+len(t.ToResourceRules)+len(t.FromRules)+len(t.InboundRules)+
		len(t.Warnings) > 0
}

func (a *asked) typeRules(d *resources.Descriptor) TypeRules {
	out := TypeRules{
		Type: d.Type, ToRules: []TagRule{}, ToResourceRules: []ResourceRule{}, FromRules: []FromRules{},
		InboundRules: []InboundRules{}, Warnings: []string{},
	}
	shape := d.Policy
	if shape == nil {
		shape = &resources.PolicyShape{Rules: true}
	}
	if shape.Single {
		one := matching.ProxyConf(d.Type, a.proxy, a.policies)
		if one.Conf != nil && !a.left.anyOut(one.Origins) {
			out.ProxyRule = &ProxyRule{Conf: one.Conf, Origin: originsOf(one.Origins)}
		}
		out.Warnings = a.appendTexts(out.Warnings, one.Warnings)
	}
	if shape.To {
		a.addTo(&out)
	}
	for i := range a.proxy.Inbounds {
		in := &a.proxy.Inbounds[i]
		if shape.From {
			a.addFrom(&out, in)
		}
		if shape.Rules || shape.FromAsRules {
			a.addInbound(&out, in)
		}
	}
	return out
}

// addTo adds the rules for every service and route if some policy targets any of them.
func (a *asked) addTo(out *TypeRules) {
	destinations := a.destinations(a.proxy.Zone)
	to := matching.To(matching.ToInput{Type: out.Type, Proxy: a.proxy, Policies: a.policies, Destinations: destinations})
	groups := newGroups()
	for _, rule := range to.Complete(destinations, a.proxy.Key.Mesh) {
		if hidden := a.left.anyOut(rule.Origins); hidden || rule.Destination != nil && a.left.out(rule.Destination.Resource) {
			continue
		}
		if a.grouped {
			if at, found := groups.of(rule, len(out.ToResourceRules)); found {
				out.ToResourceRules[at].add(rule)
				continue
			}
		}
		out.ToResourceRules = append(out.ToResourceRules, resourceRule(rule))
	}
	out.ToRules = append(out.ToRules, a.tagRules(to.Rules)...)
	out.Warnings = a.appendTexts(out.Warnings, to.Warnings)
}

func resourceRule(rule *matching.ResourceRule) ResourceRule {
	out := ResourceRule{Conf: rule.Conf, Origin: originsOf(rule.Origins),
		ResourceSectionName: rule.Key.Section}
	if rule.Destination == nil {
		kri := resources.KRI{Short: "m", Name: rule.Key.Mesh}
		out.ResourceMeta = Meta{Type: resources.TypeMesh, Name: rule.Key.Mesh, Labels: map[string]string{}, KRI: kri.String()}
		return out
	}
	out.ResourceMeta = metaOf(rule.Destination.Resource)
	out.KRI = rule.Destination.KRI.WithSection(rule.Key.Section).String()
	return out
}

// tagRules returns the rules that contain no left-out item.
func (a *asked) tagRules(rules []matching.SubsetRule) []TagRule {
	var out []TagRule
	for i := range rules {
		if !a.left.anyOut(rules[i].Origins) {
			out = append(out, tagRule(&rules[i]))
		}
	}
	return out
}

func tagRule(rule *matching.SubsetRule) TagRule {
	out := TagRule{Conf: rule.Conf, Matchers: []TagMatcher{}, Origin: legacyOrigins(rule.Origins)}
	for _, m := range rule.Matchers {
		out.Matchers = append(out.Matchers, TagMatcher{Key: m.Key, Value: m.Value, Not: m.Not})
	}
	return out
}

func (a *asked) inboundMeta(in *matching.InboundPort) InboundMeta {
	out := InboundMeta{Name: in.Name, Port: in.Port, Tags: in.Tags, KRI: a.inboundKRI(in)}
	if out.Tags == nil {
		out.Tags = map[string]string{}
	}
	return out
}

func (a *asked) inboundKRI(in *matching.InboundPort) string {
	return resources.KRIOf(a.resource).WithSection(in.Section()).String()
}

func (a *asked) addFrom(out *TypeRules, in *matching.InboundPort) {
	from := matching.From(matching.InboundInput{Type: out.Type, Proxy: a.proxy, Inbound: in, Policies: a.policies})
	out.Warnings = a.appendTexts(out.Warnings, from.Warnings)
	rules := FromRules{Inbound: a.inboundMeta(in), Rules: a.tagRules(from.Rules)}
	if len(rules.Rules) == 0 {
		return
	}
	out.FromRules = append(out.FromRules, rules)
}

func (a *asked) addInbound(out *TypeRules, in *matching.InboundPort) {
	rules := InboundRules{Inbound: a.inboundMeta(in)}
	if isPermission(out.Type) {
		permissions, warnings := a.permissionsOn(in, out.Type)
		for _, p := range permissions {
			origin := Origin{ResourceMeta: metaOf(p.policy), KRI: p.Origin.String(), Place: p.Place}
			rules.Rules = append(rules.Rules, InboundRule{Conf: []json.RawMessage{permissionConf(&p.Conf)}, Origin: []Origin{origin},
				Position: p.Position, Headers: headersOf(p.Rule), Closed: p.Closed})
		}
		out.Warnings = addTexts(out.Warnings, warnings)
	} else {
		confs := matching.InboundConfs(matching.InboundInput{Type: out.Type, Proxy: a.proxy, Inbound: in,
			Policies: a.policies})
		for i, c := range confs.Items {
			if a.left.anyOut(c.Origins) {
				continue
			}
			rules.Rules = append(rules.Rules, InboundRule{Conf: []json.RawMessage{c.Conf}, Match: c.Match,
				Origin: originsOf(c.Origins), Position: i + 1})
		}
		out.Warnings = a.appendTexts(out.Warnings, confs.Warnings)
	}
	if len(rules.Rules) > 0 {
		out.InboundRules = append(out.InboundRules, rules)
	}
}
