package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// InboundPolicies is the answer to `_inbounds/{kri}/_policies`, as in Kuma's inspect API. Source: seed 000, "Inspect
// API".
type InboundPolicies struct {
	Policies []KindPolicies `json:"policies"`
	// LeftOut counts the policies that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// KindPolicies are the policies of one kind on an inbound.
type KindPolicies struct {
	Kind resources.Type `json:"kind"`
	// Rules are in the order of evaluation. Those of permissions are not merged.
	Rules []Rule `json:"rules"`
	// Origins are the policies, each once, in the same order.
	Origins  []Ref    `json:"origins"`
	Warnings []string `json:"warnings,omitempty"`
}

// Rule is the result of policies for the requests of one match.
type Rule struct {
	KRI string `json:"kri"`
	// Match is absent if the rule applies to every request.
	Match json.RawMessage `json:"match,omitempty"`
	// Conf is a resources.PermissionConf in a permission.
	Conf json.RawMessage `json:"conf"`
	// Origin is the KRI of the policy; if several were merged, that of the one that wins.
	Origin string `json:"origin"`
	Place
	// Origins are all merged items, in order; absent in permissions.
	Origins []Origin `json:"origins,omitempty"`
	// Headers are the expressions, by header, that a TrafficTarget's requests must match too.
	Headers map[string]string `json:"headers,omitempty"`
	// Closed reports that the rule could not be understood and denies every client.
	Closed bool `json:"closed,omitempty"`
}

func (h *handlers) inboundPolicies(w http.ResponseWriter, r *http.Request) error {
	kri, err := resources.ParseKRI(r.PathValue("kri"))
	if err != nil {
		return api.BadField("inbound", "%v", err)
	}
	key := keyOf(r, resources.TypeDataplane)
	if q := r.URL.Query(); q.Get("namespace") == "" && q.Get("zone") == "" && kri.Mesh == key.Mesh &&
		kri.Name == key.Name {
		key.Name = kri.WithSection("").String() // it names the inbound's proxy
	}
	a, err := h.proxyAt(r, key)
	if err != nil {
		return err
	}
	if want := resources.KRIOf(a.resource); kri.WithSection("") != want {
		return api.BadField("inbound",
			"it is not an inbound of this Dataplane: want %s with the inbound's name or port at its end", want)
	}
	in := a.proxy.Inbound(kri.Section)
	if in == nil {
		return api.NotFound(fmt.Sprintf("inbound %q of %s", kri.Section, a.resource.Key))
	}
	policies := a.onInbound(in)
	return api.WriteLongJSON(w, InboundPolicies{Policies: policies, LeftOut: a.left.count()})
}

// onInbound returns the policies of all kinds on one inbound, in the order in which kinds are evaluated.
func (a *asked) onInbound(in *matching.InboundPort) []KindPolicies {
	out := []KindPolicies{}
	for _, d := range resources.Descriptors() {
		var kind KindPolicies
		switch {
		case isPermission(d.Type):
			kind = a.permissionKind(in, d.Type)
		case d.Policy != nil && (d.Policy.Rules || d.Policy.FromAsRules):
			kind = a.confKind(d.Type, in)
		}
		if len(kind.Rules)+len(kind.Warnings) > 0 {
			out = append(out, kind)
		}
	}
	return out
}

func (a *asked) permissionKind(in *matching.InboundPort, t resources.Type) KindPolicies {
	kind := KindPolicies{Kind: t, Rules: []Rule{}, Origins: []Ref{}}
	rules, warnings := a.permissionsOn(in, t)
	for i := range rules {
		kri := rules[i].Origin.String()
		kind.Rules = append(kind.Rules, Rule{KRI: kri, Conf: permissionConf(&rules[i].Conf), Origin: kri, Place: rules[i].Place,
			Headers: headersOf(rules[i].Rule), Closed: rules[i].Closed})
		kind.Origins = appendRef(kind.Origins, kri)
	}
	kind.Warnings = warnings
	return kind
}

// permissionConf returns a permission's conf as JSON. It consists of texts and lists, which always have a JSON form.
func permissionConf(conf *resources.PermissionConf) json.RawMessage {
	raw, _ := json.Marshal(conf)
	return raw
}

func headersOf(r *matching.Rule) map[string]string {
	out := map[string]string{}
	for _, h := range r.Headers {
		out[h.Name] = h.Expression
	}
	return out
}

func (a *asked) confKind(t resources.Type, in *matching.InboundPort) KindPolicies {
	kind := KindPolicies{Kind: t, Rules: []Rule{}, Origins: []Ref{}}
	confs := matching.InboundConfs(matching.InboundInput{Type: t, Proxy: a.proxy, Inbound: in, Policies: a.policies})
	for i := range confs.Items {
		item := &confs.Items[i]
		if a.left.anyOut(item.Origins) {
			continue
		}
		origins := originsOf(item.Origins)
		last := origins[len(origins)-1]
		place := Place{RuleIndex: last.RuleIndex, Position: i + 1, DecidedBy: last.DecidedBy}
		kind.Rules = append(kind.Rules, Rule{KRI: last.KRI, Match: item.Match, Conf: item.Conf, Origin: last.KRI,
			Place: place, Origins: origins})
		for _, o := range origins {
			kind.Origins = appendRef(kind.Origins, o.KRI)
		}
	}
	kind.Warnings = a.appendTexts(nil, confs.Warnings)
	return kind
}
