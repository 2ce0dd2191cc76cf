package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Coverage reports which entries of all policies some test matched.
type Coverage struct {
	Total, Touched int
	// Untouched holds `KRI field` for each entry that no test matched, in the order of policies.
	Untouched []string
}

// maxNamed is the number of entries that the coverage line names.
const maxNamed = 10

// String returns one readable line.
func (c Coverage) String() string {
	text := fmt.Sprintf("coverage: %d of %d entries", c.Touched, c.Total)
	if len(c.Untouched) == 0 {
		return text
	}
	named := c.Untouched[:min(len(c.Untouched), maxNamed)]
	text += "; no test touches " + strings.Join(named, ", ")
	if more := len(c.Untouched) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// MarshalJSON spells the fields like those of other answers.
func (c Coverage) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"total": c.Total, "touched": c.Touched,
		"untouched": append([]string{}, c.Untouched...)})
}

// touch is one entry.
type touch struct{ policy, field string }

func (w *World) coverage(touched map[touch]bool) Coverage {
	var c Coverage
	for _, name := range w.Meshes() {
		policies := slices.Clone(w.mesh(name).policies)
		slices.SortFunc(policies, func(a, b *matching.Policy) int { return strings.Compare(a.KRI.String(), b.KRI.String()) })
		for _, p := range policies {
			if !p.Enforced() {
				continue
			}
			for _, field := range fieldsOf(p) {
				c.Total++
				if touched[touch{p.KRI.String(), field}] {
					c.Touched++
				} else {
					c.Untouched = append(c.Untouched, p.KRI.String()+" "+field)
				}
			}
		}
	}
	return c
}

// fieldsOf returns the entries of a policy under the names that answers use.
func fieldsOf(p *matching.Policy) []string {
	var out []string
	for i := range p.Rules() {
		r := &p.Rules()[i]
		if r.Closed {
			out = append(out, fieldOf(r, p, rbac.EffectNone, 0))
		}
		for _, effect := range []rbac.Effect{rbac.EffectDeny, rbac.EffectAllowWithShadowDeny, rbac.EffectAllow} {
			for n := range rbac.Entries(r, effect) {
				out = append(out, fieldOf(r, p, effect, n))
			}
		}
	}
	if spec, err := resources.SpecAs[resources.Policy](p.Resource); err == nil {
		for i := range spec.From {
			out = append(out, fmt.Sprintf("from[%d].default", i))
		}
	}
	return out
}
