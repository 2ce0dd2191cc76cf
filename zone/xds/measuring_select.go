package xds

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// basicMetrics matches the metric names of profile Basic, as Envoy has them.
const basicMetrics = `(_rq_|_cx_|\.rbac\.|^server\.(live|state|uptime|memory)|^listener_manager\.|^cluster_manager\.|^control_plane\.|membership_)`

// selectedMetrics selects the metrics to show. The admin interface selects by filter, an expression for Envoy's names.
// The rest uses the names that Prometheus sees.
type selectedMetrics struct {
	unused bool
	filter string
	// base is empty if everything that filter matches is shown, except for exclude.
	base, exclude, include []resources.MetricSelector
}

// byName reports whether something is selected by the names that Prometheus sees.
func (s *selectedMetrics) byName() bool { return len(s.base) > 0 || len(s.exclude) > 0 }

// path returns the path of the metrics on the admin interface.
func (s *selectedMetrics) path() string {
	query := url.Values{}
	if !s.unused {
		query.Set("usedonly", "")
	}
	if s.filter != "" {
		query.Set("filter", s.filter)
	}
	if len(query) == 0 {
		return "/stats/prometheus"
	}
	return "/stats/prometheus?" + query.Encode()
}

// nothing matches no name.
const nothing = "^$"

// selectMetrics reads the metrics to show, and returns the parts without effect. Profiles alone become expressions for
// the admin interface, which then skips the rest.
func selectMetrics(sidecar *resources.MetricSidecar) (out *selectedMetrics, problems []string) {
	out = &selectedMetrics{}
	if sidecar == nil {
		return out, nil
	}
	out.unused = sidecar.IncludeUnused != nil && *sidecar.IncludeUnused
	if sidecar.Regex != nil {
		expr, err := resources.MetricExpression(*sidecar.Regex)
		if err != nil {
			expr = nothing // only a peer can send it: nothing rather than everything
			problems = append(problems, "sidecar.regex: "+err.Error())
		}
		out.filter = expr
	}
	if sidecar.Profiles == nil {
		return out, problems
	}
	list := func(name string, from []resources.MetricSelector) (taken []resources.MetricSelector) {
		for i := range from {
			field, err := from[i].Check()
			if err == nil && len(taken) == resources.MaxMetricSelectors {
				err = fmt.Errorf("a proxy takes %d", resources.MaxMetricSelectors)
			}
			if err != nil {
				problems = append(problems, fmt.Sprintf("sidecar.profiles.%s[%d].%s: %v", name, i, field, err))
				continue
			}
			taken = append(taken, from[i])
		}
		return taken
	}
	out.exclude = list("exclude", sidecar.Profiles.Exclude)
	out.include = list("include", sidecar.Profiles.Include)
	filter, names := profileOf(sidecar.Profiles.AppendProfiles)
	switch {
	case filter == "": // all
		if len(out.exclude) == 0 {
			out.include = nil // nothing is left out that it could bring back
		}
	case out.filter == "" && len(out.include) == 0:
		out.filter = filter
	default:
		out.base = []resources.MetricSelector{{Type: resources.SelectRegex, Match: names}}
	}
	return out, problems
}

// profileOf returns expressions for the metrics of the widest profile: by Envoy's names, and by those that Prometheus
// sees. They are empty for all metrics.
func profileOf(profiles []resources.MetricProfile) (filter, names string) {
	has := func(name string) bool {
		return slices.ContainsFunc(profiles, func(p resources.MetricProfile) bool { return p.Name == name })
	}
	switch {
	case has(resources.ProfileAll):
		return "", ""
	case has(resources.ProfileBasic):
		return basicMetrics, basicNames
	case has(resources.ProfileNone):
		return nothing, nothing
	}
	return "", ""
}
