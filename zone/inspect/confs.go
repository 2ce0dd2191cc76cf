package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// ProxyPolicies is the answer to `_policies`: the types that have one conf for the whole proxy.
type ProxyPolicies struct {
	Policies []ProxyPolicy `json:"policies"`
	// LeftOut counts the policies that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// ProxyPolicy is the conf of one type for a whole proxy.
type ProxyPolicy struct {
	Kind    resources.Type  `json:"kind"`
	Conf    json.RawMessage `json:"conf"`
	Origins []Ref           `json:"origins"`
	// Merged are the items that conf was merged from, in order.
	Merged   []Origin `json:"merged"`
	Warnings []string `json:"warnings,omitempty"`
}

func (h *handlers) proxyPolicies(w http.ResponseWriter, r *http.Request) error {
	a, err := h.proxyOf(r)
	if err != nil {
		return err
	}
	answer := ProxyPolicies{Policies: []ProxyPolicy{}}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil || !d.Policy.Single {
			continue
		}
		if one := matching.ProxyConf(d.Type, a.proxy, a.policies); one.Conf != nil && !a.left.anyOut(one.Origins) {
			answer.Policies = append(answer.Policies, ProxyPolicy{
				Kind: d.Type, Conf: one.Conf, Origins: refsOf(one.Origins), Merged: originsOf(one.Origins),
				Warnings: a.appendTexts(nil, one.Warnings),
			})
		}
	}
	answer.LeftOut = a.left.count()
	return api.WriteLongJSON(w, answer)
}

// OutboundPolicies is the answer to `_outbounds/{kri}/_policies`.
type OutboundPolicies struct {
	Policies []OutboundPolicy `json:"policies"`
	// LeftOut counts the policies that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
	// Warnings are the warnings of the routes for the traffic. Their confs are not shown here.
	Warnings []string `json:"warnings,omitempty"`
}

// OutboundPolicy is the conf of one type for traffic to one service or to one of its ports.
type OutboundPolicy struct {
	Kind resources.Type `json:"kind"`
	// Conf is a list of one, the merged conf.
	Conf    []json.RawMessage `json:"conf"`
	Origins []Ref             `json:"origins"`
	// Merged are the items that conf was merged from, in order.
	Merged   []Origin `json:"merged"`
	Warnings []string `json:"warnings,omitempty"`
}

// outboundPolicies answers for every service that the proxy could send to, even without an outbound for it.
func (h *handlers) outboundPolicies(w http.ResponseWriter, r *http.Request) error {
	kri, err := resources.ParseKRI(r.PathValue("kri"))
	if err != nil {
		return api.BadField("outbound", "%v", err)
	}
	a, err := h.proxyOf(r)
	if err != nil {
		return err
	}
	key, err := a.destination(kri)
	if err != nil {
		return err
	}
	answer := OutboundPolicies{Policies: []OutboundPolicy{}}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil || !d.Policy.To {
			continue
		}
		to := matching.To(matching.ToInput{Type: d.Type, Proxy: a.proxy, Policies: a.policies,
			Destinations: a.destinations(a.proxy.Zone)})
		switch rule := to.For(key); {
		case rule == nil, a.left.anyOut(rule.Origins):
		case d.Policy.Route:
			answer.Warnings = a.appendTexts(answer.Warnings, warningsOf(rule.Origins, to.Warnings))
		default:
			answer.Policies = append(answer.Policies, OutboundPolicy{
				Kind: d.Type, Conf: []json.RawMessage{rule.Conf}, Origins: refsOf(rule.Origins), Merged: originsOf(rule.Origins),
				Warnings: a.appendTexts(nil, to.Warnings),
			})
		}
	}
	answer.LeftOut = a.left.count()
	return api.WriteLongJSON(w, answer)
}

// warningsOf returns the warnings of the policies that the origins belong to.
func warningsOf(origins []matching.Origin, all []matching.Warning) []matching.Warning {
	return slices.DeleteFunc(slices.Clone(all), func(w matching.Warning) bool {
		return !slices.ContainsFunc(origins, func(o matching.Origin) bool { return o.KRI() == w.Policy })
	})
}

// destination returns the service that a KRI names, and the port that its section names.
func (a *asked) destination(kri resources.KRI) (matching.ResourceKey, error) {
	for _, d := range a.destinations(a.proxy.Zone).All() {
		if d.KRI != kri.WithSection("") || !a.left.reader.May(d.Resource) {
			continue
		}
		key := d.Key()
		if kri.Section == "" {
			return key, nil
		}
		section, ok := d.SectionOf(kri.Section)
		if !ok {
			return key, api.NotFound(fmt.Sprintf("port %q of %s", kri.Section, d.KRI))
		}
		key.Section = section
		return key, nil
	}
	return matching.ResourceKey{}, api.NotFound("service " + kri.String())
}
