package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// ServicePolicies is the answer to `_policies` of a service: the result of policies for the traffic to it.
type ServicePolicies struct {
	// Callers counts the proxies that were evaluated: those of the zone, or of all zones on the global.
	Callers  int             `json:"callers"`
	Policies []ServicePolicy `json:"policies"`
	// LeftOut counts the proxies and policies that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// ServicePolicy is the part of one type: a rule for each group of callers whose merged items are the same.
type ServicePolicy struct {
	Kind  resources.Type `json:"kind"`
	Rules []ServiceRule  `json:"rules"`
	// Warnings are those of the policies in the rules.
	Warnings []string `json:"warnings,omitempty"`
}

// ServiceRule is the conf for the traffic of some callers to the service, or to the port that the KRI's section names.
type ServiceRule struct {
	KRI string `json:"kri"`
	// Conf is a list of one, the merged conf.
	Conf []json.RawMessage `json:"conf"`
	// Merged are the items that conf was merged from, in order: the last wins.
	Merged  []Origin `json:"merged"`
	Callers Callers  `json:"callers"`
}

// Callers are the proxies that a rule applies to.
type Callers struct {
	Total int `json:"total"`
	// Items are the first of their KRIs, sorted, at most maxCallers.
	Items []string `json:"items"`
}

// maxCallers limits the callers that one rule names.
const maxCallers = 100

// servicePolicies evaluates every proxy that could send to the service, even without an outbound for it. Proxies that
// the same policies select are evaluated together.
func (h *handlers) servicePolicies(w http.ResponseWriter, r *http.Request) error {
	v, key, err := h.serviceOf(r)
	if err != nil {
		return err
	}
	s := &serviceAnswer{view: v, service: v.found[key], groups: map[string]*callerGroup{},
		left: newLeftOut(h.server.Reader(r))}
	for found := range v.snap.List(store.Query{Type: resources.TypeDataplane, Mesh: key.Mesh}) {
		if proxy, err := matching.NewProxy(found); err == nil && !s.left.out(found) {
			s.add(proxy.WithGateways(v.gateways, v.config.SystemNamespace), resources.KRIOf(found).String())
		}
	}
	return api.WriteLongJSON(w, s.answer())
}

// serviceOf returns the service that the path names.
func (h *handlers) serviceOf(r *http.Request) (*view, resources.Key, error) {
	d, ok := resources.LookupPath(r.PathValue("plural"))
	if !ok || !matching.IsDestination(d.Type) || d.Policy != nil {
		return nil, resources.Key{}, api.NewError(http.StatusNotFound, "Not Found",
			"only services and Dataplanes have _policies, not "+r.PathValue("plural"))
	}
	key := keyOf(r, d.Type)
	v := h.views.of(key.Mesh)
	if v == nil {
		return nil, key, h.server.MissingMesh(r, h.views.config.Store.Snapshot(), key.Mesh)
	}
	found, err := h.server.Find(r, v.snap, resources.VerbRead, key)
	if err != nil {
		return nil, key, err
	}
	if v.found[found.Key] == nil {
		return nil, key, fmt.Errorf("%s does not decode", found.Key)
	}
	return v, found.Key, nil
}

// serviceAnswer collects the callers of one service.
type serviceAnswer struct {
	view    *view
	service *matching.Destination
	callers int
	groups  map[string]*callerGroup
	left    *leftOut
}

// callerGroup holds the proxies of one zone that the same policies select.
type callerGroup struct {
	proxy    *matching.Proxy
	policies []*matching.Policy
	kris     []string
}

func (s *serviceAnswer) add(proxy *matching.Proxy, kri string) {
	s.callers++
	var policies []*matching.Policy
	id := proxy.Zone
	for _, p := range s.view.candidates(proxy) {
		if d := p.Resource.Descriptor().Policy; d != nil && d.To && matching.Selects(p, proxy) {
			policies = append(policies, p)
			id += " " + p.Resource.Key.String()
		}
	}
	g := s.groups[id]
	if g == nil {
		g = &callerGroup{proxy: proxy, policies: policies}
		s.groups[id] = g
	}
	g.kris = append(g.kris, kri)
}

func (s *serviceAnswer) answer() ServicePolicies {
	out := ServicePolicies{Callers: s.callers, Policies: []ServicePolicy{}}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil || !d.Policy.To {
			continue
		}
		if one := s.policiesOf(d.Type); len(one.Rules) > 0 {
			out.Policies = append(out.Policies, one)
		}
	}
	for i := range out.Policies {
		for j, text := range out.Policies[i].Warnings {
			out.Policies[i].Warnings[j] = s.left.reader.Text(text)
		}
	}
	out.LeftOut = s.left.count()
	return out
}

// policiesOf merges equal rules of several groups.
func (s *serviceAnswer) policiesOf(t resources.Type) ServicePolicy {
	out := ServicePolicy{Kind: t, Rules: []ServiceRule{}}
	at := map[string]int{}
	for _, g := range s.groups {
		destinations := s.view.destinations(g.proxy.Zone)
		to := matching.To(matching.ToInput{
			Type: t, Proxy: g.proxy, Policies: g.policies, Destinations: destinations,
			Only: map[matching.ResourceKey]bool{s.service.Key(): true},
		})
		for _, rule := range s.rulesOf(&to) {
			if s.left.anyOut(rule.Origins) {
				continue
			}
			kri := s.service.KRI.WithSection(rule.section).String()
			id := kri + " " + string(rule.Conf)
			for _, o := range rule.Origins {
				id += fmt.Sprintf(" %s#%d", o.KRI(), o.RuleIndex)
			}
			i, ok := at[id]
			if !ok {
				i = len(out.Rules)
				at[id] = i
				out.Rules = append(out.Rules, ServiceRule{KRI: kri, Conf: []json.RawMessage{rule.Conf},
					Merged: originsOf(rule.Origins)})
			}
			out.Rules[i].Callers.Items = append(out.Rules[i].Callers.Items, g.kris...)
			out.Warnings = appendTexts(out.Warnings, s.left.warnings(warningsOf(rule.Origins, to.Warnings), g.policies))
		}
	}
	for i := range out.Rules {
		out.Rules[i].Callers.cut()
	}
	slices.SortFunc(out.Rules, func(a, b ServiceRule) int {
		return cmp.Or(cmp.Compare(a.KRI, b.KRI), cmp.Compare(b.Callers.Total, a.Callers.Total),
			strings.Compare(a.Callers.Items[0], b.Callers.Items[0]))
	})
	slices.Sort(out.Warnings)
	return out
}

// sectionRule is a rule with the section that it applies to; the rule itself may belong to a wider section.
type sectionRule struct {
	*matching.ResourceRule
	section string
}

// rulesOf returns the rule of the whole service, and those of the ports that policies name.
func (s *serviceAnswer) rulesOf(to *matching.ToRules) []sectionRule {
	var out []sectionRule
	key := s.service.Key()
	if rule := to.For(key); rule != nil {
		out = append(out, sectionRule{rule, ""})
	}
	for _, section := range s.service.Sections() {
		key.Section = section
		if rule := to.ResourceRules[key]; rule != nil {
			out = append(out, sectionRule{rule, section})
		}
	}
	return out
}

// cut sorts the callers, counts them and keeps the first maxCallers.
func (c *Callers) cut() {
	slices.Sort(c.Items)
	c.Total = len(c.Items)
	c.Items = c.Items[:min(c.Total, maxCallers)]
}
