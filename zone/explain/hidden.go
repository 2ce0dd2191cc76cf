package explain

import (
	"regexp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Hidden stands in answers for a policy that who asks may not read.
const Hidden = "hidden"

// ForReader makes the answers those for somebody who may read only the resources for which may holds. Verdicts are as they are;
// what is hidden has no name in them and is counted. Call it before anything is asked.
func (w *World) ForReader(may func(*resources.Resource) bool) *World {
	w.may = may
	return w
}

// hides reports whether a resource is hidden from who asks.
func (w *World) hides(r *resources.Resource) bool { return w.may != nil && !w.may(r) }

// hidden are the resources of a mesh that who asks may not read: by KRI, and Dataplanes by key too.
type hidden struct {
	kris    map[string]bool
	proxies map[resources.Key]bool
}

func (h *hidden) add(r *resources.Resource) {
	h.kris[resources.KRIOf(r).String()] = true
	if r.Type == resources.TypeDataplane {
		h.proxies[r.Key] = true
	}
}

// proxy reports whether a proxy is hidden.
func (m *mesh) hidesProxy(p *matching.Proxy) bool { return m.hidden.proxies[p.Key] }

// policyName is what an answer calls a policy, or a decision that none made.
func (m *mesh) policyName(name string) string {
	if m.hidden.kris[name] {
		return Hidden
	}
	return name
}

// hiddenIn counts the hidden policies of an inbound's rules.
func (m *mesh) hiddenIn(rules *matching.Rules) int {
	seen := map[resources.KRI]bool{}
	for i := range rules.Items {
		if origin := rules.Items[i].Origin; m.hidden.kris[origin.String()] {
			seen[origin] = true
		}
	}
	return len(seen)
}

var kriInText = regexp.MustCompile(`kri_[A-Za-z0-9_.-]+`)

// mentions reports whether a text names something hidden.
func (m *mesh) mentions(text string) bool {
	if len(m.hidden.kris) == 0 {
		return false
	}
	for _, name := range kriInText.FindAllString(text, -1) {
		if kri, err := resources.ParseKRI(name); err != nil || m.hidden.kris[kri.WithSection("").String()] {
			return true
		}
	}
	return false
}
