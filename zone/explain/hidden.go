package explain

import (
	"regexp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Hidden stands in answers for a policy that the caller may not read.
const Hidden = "hidden"

// ForReader limits the answers to what a caller may read: the resources for which may returns true. Verdicts do not
// change; hidden resources are counted and not named. Call it before the first question.
func (w *World) ForReader(may func(*resources.Resource) bool) *World {
	w.may = may
	return w
}

// hides reports whether the caller may not read a resource.
func (w *World) hides(r *resources.Resource) bool { return w.may != nil && !w.may(r) }

// hidden holds the resources of a mesh that the caller may not read: by KRI, and Dataplanes by key too.
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

// hidesProxy reports whether a proxy is hidden.
func (m *mesh) hidesProxy(p *matching.Proxy) bool { return m.hidden.proxies[p.Key] }

// policyName returns the name in answers of a policy, or of a decision that no policy made.
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

// mentions reports whether a text names a hidden resource.
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
