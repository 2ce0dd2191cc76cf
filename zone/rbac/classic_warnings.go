package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// ClassicWarnings reports where the classic form differs from the rules because gRPC servers cannot see a condition. It
// does not repeat Warnings.
func ClassicWarnings(rules matching.Rules) []matching.Warning {
	var out []matching.Warning
	for i := range rules.Items {
		r := &rules.Items[i]
		warn := func(field, text string) {
			out = append(out, matching.Warning{Policy: r.Origin, Field: fmt.Sprintf("rules[%d].default", r.Index) +
				field, Text: text})
		}
		for _, effect := range []Effect{EffectDeny, EffectAllowWithShadowDeny, EffectAllow} {
			list := listOf(r, effect)
			for j := range list {
				if list[j].SNI != nil && !faultsOf(&list[j]).has(partSNI) {
					warn(fmt.Sprintf(".%s[%d]", effect, j), sniWarning(&list[j], effect == EffectDeny))
				}
			}
		}
		for _, h := range r.Headers {
			if !seenByGRPC(strings.ToLower(h.Name)) && len(r.Conf.Allow)+len(r.Conf.AllowWithShadowDeny) > 0 {
				warn("", fmt.Sprintf("a gRPC server cannot match the header %s, so nothing is allowed there", h.Name))
			}
		}
	}
	return slices.Clip(out)
}

func sniWarning(m *resources.PermissionMatch, deny bool) string {
	const cannot = "a gRPC server does not report the server name (sni), so the entry "
	switch {
	case !deny:
		return cannot + "allows nothing there"
	case m.SpiffeID == nil && m.Path == nil && len(m.Method) == 0:
		return cannot + "denies everybody there"
	}
	return cannot + "denies without it there"
}
