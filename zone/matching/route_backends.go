package matching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// The effect on traffic for a backend that does not exist.
const (
	shareFails = "its share of the traffic fails"
	noCopies   = "no copies are sent"
)

// backendProblems returns a warning for each backend of a route's item that no proxy sends to, whatever its weight. For
// items of other types it returns nil. A backend without a port means the service's only port, or the port that the
// traffic was for. Source: seed 004, "Cross-resource references".
func (x *Destinations) backendProblems(it *item) []Warning {
	warnings, _ := x.checkBackends(it)
	return warnings
}

// Subset is a subset of a service that a route sends to.
type Subset struct {
	// Field is the reference's path in the route.
	Field   string
	Service *resources.Resource
	Tags    map[string]string
}

// checkBackends does backendProblems's work, and returns the subsets that resolve.
func (x *Destinations) checkBackends(it *item) ([]Warning, []Subset) {
	t := it.policy.Resource.Type
	if !isRouteType(t) {
		return nil, nil
	}
	var subsets []Subset
	fields, _ := it.conf.(map[string]any)
	called, _ := x.resolveContained(it.policy.Referrer(), it.ref)
	var out []Warning
	for j, r := range listOf(fields, "rules") {
		rule, _ := r.(map[string]any)
		b := backendCheck{destinations: x, policy: it.policy, called: called,
			field: fmt.Sprintf("to[%d].rules[%d].default", it.index, j)}
		// A TCP route's conf is an HTTP route's without filters.
		var conf resources.HTTPRouteConf
		if err := json.Unmarshal(encodeConf(rule["default"]), &conf); err != nil {
			b.warn("", fmt.Sprintf("does not have the form of a %s's conf, the rule has no effect: %v", t, err))
		}
		for k := range conf.BackendRefs {
			b.check(fmt.Sprintf(".backendRefs[%d]", k), &conf.BackendRefs[k], shareFails)
		}
		if t == resources.TypeMeshHTTPRoute {
			b.checkMirrors(conf.Filters)
		}
		out, subsets = append(out, b.warnings...), append(subsets, b.subsets...)
	}
	return out, subsets
}

// backendCheck checks the backends of one rule; field is the path of its conf.
type backendCheck struct {
	destinations *Destinations
	policy       *Policy
	// called are the services, or ports of services, of the traffic.
	called   []Target
	field    string
	warnings []Warning
	subsets  []Subset
}

func (b *backendCheck) warn(below, text string) {
	b.warnings = append(b.warnings, Warning{Policy: b.policy.KRI, Field: b.field + below, Text: text})
}

func (b *backendCheck) check(below string, ref *resources.BackendRef, effect string) {
	if !takesTraffic(resources.Type(ref.ServiceKind())) {
		b.warn(below, fmt.Sprintf("not dialled: traffic to a %s is not served, %s", ref.KindOrMesh(), effect))
		return
	}
	target, problem := b.destinations.ResolveBackend(b.policy.Referrer(), ref)
	if problem == "" {
		problem = cmp.Or(unreachable(target.Destination), b.portProblem(target))
	}
	if problem != "" {
		b.warn(below, writtenBy(b.policy).text(b.field+below, &ref.TargetRef, problem)+", "+effect)
	} else if len(ref.Subset()) > 0 {
		b.subsets = append(b.subsets, Subset{Field: b.field + below, Service: target.Destination.Resource, Tags: ref.Subset()})
	}
}

// portProblem reports a backend with several ports that names none, if traffic arrives for a port that it does not
// have.
func (b *backendCheck) portProblem(backend Target) string {
	ports := backend.Destination.Sections()
	if backend.Section != "" || len(ports) < 2 {
		return ""
	}
	var without []string
	for _, t := range b.called {
		sections := []string{t.Section}
		if t.Section == "" {
			sections = t.Destination.Sections()
		}
		for _, s := range sections {
			if _, ok := backend.Destination.SectionOf(s); !ok && !slices.Contains(without, s) {
				without = append(without, s)
			}
		}
	}
	if len(without) == 0 {
		return ""
	}
	slices.Sort(without)
	return fmt.Sprintf("%s has the ports %s and none is named: name one, for traffic to port %s", backend.Destination.KRI,
		strings.Join(ports, ", "), strings.Join(without, ", "))
}

func (b *backendCheck) checkMirrors(filters []resources.HTTPRouteFilter) {
	for k := range filters {
		if filters[k].Type != "RequestMirror" {
			continue
		}
		below := fmt.Sprintf(".filters[%d].requestMirror", k)
		var mirror struct {
			BackendRef resources.BackendRef `json:"backendRef"`
		}
		if err := json.Unmarshal(filters[k].RequestMirror, &mirror); err != nil {
			b.warn(below, fmt.Sprintf("does not have the form of a mirror, %s: %v", noCopies, err))
			continue
		}
		b.check(below+".backendRef", &mirror.BackendRef, noCopies)
	}
}
