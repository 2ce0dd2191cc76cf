package matching

import (
	"iter"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Shortfall is a proxy's report of a policy that has no or only partial effect on it.
type Shortfall struct {
	Dataplane resources.KRI
	// Text names the field and the reason.
	Text string
}

// String names the proxy first.
func (s Shortfall) String() string { return "on " + s.Dataplane.String() + ": " + s.Text }

// Shortfalls holds proxies' reports by the policy's KRI, for each policy at most as many as an answer names.
type Shortfalls map[string][]Shortfall

// policyProblems are the sources of problems that name policies.
var policyProblems = []string{resources.ProblemProxyless, resources.ProblemPolicies, resources.ProblemGateway,
	resources.ProblemOutbounds, resources.ProblemInbounds}

// NewShortfalls reads DataplaneInsights.
func NewShortfalls(insights iter.Seq[*resources.Resource]) Shortfalls {
	out := Shortfalls{}
	for insight := range insights {
		problems := ProblemsOf(insight)
		if len(problems) == 0 {
			continue
		}
		of := insight.Key
		of.Type = resources.TypeDataplane
		dataplane := resources.KRIOf(&resources.Resource{Key: of, Labels: insight.Labels})
		for _, source := range policyProblems {
			for _, part := range strings.Split(problems[source], problemSeparator) {
				for _, kri := range krisIn(part) {
					one := Shortfall{dataplane, part}
					if list := out[kri]; len(list) < maxLeftOut && !slices.Contains(list, one) {
						out[kri] = append(list, one)
					}
				}
			}
		}
	}
	return out
}

// problemSeparator separates two problems of one source.
const problemSeparator = "; "

// krisIn returns the KRIs that a text names.
func krisIn(text string) (out []string) {
	for {
		at := strings.Index(text, "kri_")
		if at < 0 {
			return out
		}
		text = text[at:]
		end := strings.IndexFunc(text, func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		if end < 0 {
			end = len(text)
		}
		out = append(out, text[:end])
		text = text[end:]
	}
}
