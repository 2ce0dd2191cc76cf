package matching

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Referrer is the home of the author of a reference: a policy or a proxy.
type Referrer struct {
	// Type is the policy's type; empty for a proxy.
	Type                  resources.Type
	Mesh, Zone, Namespace string
	Role                  resources.Role
}

// Referrer returns the policy's referrer.
func (p *Policy) Referrer() Referrer {
	return Referrer{Type: p.Resource.Type, Mesh: p.Resource.Mesh, Zone: p.zone, Namespace: p.namespace, Role: p.Role}
}

// ofGlobal reports whether the operator of the mesh wrote the policy, on the global: its namespace is the global's
// system namespace.
func (r Referrer) ofGlobal() bool {
	return r.Type != "" && r.Zone == "" && r.Role == resources.RoleSystem
}

// Referrer returns the referrer for the references of a proxy's outbounds. They have no namespace: a resource in the
// proxy's own namespace wins, otherwise the only one of the name.
func (p *Proxy) Referrer() Referrer {
	return Referrer{Mesh: p.Key.Mesh, Zone: p.Zone, Namespace: p.Namespace, Role: resources.RoleSystem}
}

// Target is the meaning of a reference: a destination, or one section of it.
type Target struct {
	Destination *Destination
	// Section is empty for the whole destination.
	Section string
}

// Key returns the target's key.
func (t Target) Key() ResourceKey {
	k := t.Destination.Key()
	k.Section = t.Section
	return k
}

// Resolve returns the targets of a reference to a service or route: one target for a reference by name, one or more for
// a reference by labels. A name is a hashed name or a display name. A display name in the referrer's own zone wins over
// one of the global. For a referrer of the global, the configured zone follows, then any other. If the reference means
// nothing, or a name means more than one thing, there are no targets and problem is the reason, in lower case. A
// reference to a copy follows its original. Source: seed 004, "Cross-resource references".
func (x *Destinations) Resolve(from Referrer, ref *resources.TargetRef) (targets []Target, problem string) {
	if !IsDestination(resources.Type(ref.Kind)) {
		return nil, fmt.Sprintf("%s is not a service or a route", ref.KindOrMesh())
	}
	if len(ref.Labels) > 0 {
		return x.sections(ref, x.byLabels(from, ref))
	}
	d, problem := x.byName(from, ref)
	if problem != "" {
		return nil, problem
	}
	return x.sections(ref, []*Destination{d})
}

// ResolveBackend returns the one target that a route's or an outbound's reference sends traffic to. If the reference
// names no section, its port is the section. A reference by labels that means several things is a problem, and so is
// one to a service that the referrer must not send to.
func (x *Destinations) ResolveBackend(from Referrer, ref *resources.BackendRef) (Target, string) {
	to := ref.TargetRef
	to.Kind, to.Tags = ref.ServiceKind(), nil
	if to.SectionName == "" && ref.Port != 0 {
		to.SectionName = strconv.FormatUint(uint64(ref.Port), 10)
	}
	targets, problem := x.Resolve(from, &to)
	if problem != "" {
		return Target{}, problem
	}
	found := make([]*Destination, len(targets))
	for i, t := range targets {
		found[i] = t.Destination
	}
	if _, problem := only(&to, found); problem != "" {
		return Target{}, problem
	}
	if problem := x.notPermitted(from, found[0]); problem != "" {
		return Target{}, problem
	}
	if len(ref.Subset()) > 0 && !knownThere(from, found[0]) {
		return Target{}, fmt.Sprintf("%s is in zone %s, whose ingress does not know a subset that only a route of zone %s names: "+
			"write the route there, or on the global", found[0].KRI, found[0].zone, from.Zone)
	}
	return targets[0], ""
}

// knownThere reports whether the zone of a service has the referrer's routes, from which its ingress learns the subsets
// that they name.
func knownThere(from Referrer, d *Destination) bool {
	return from.Zone == "" || from.Zone == d.zone || from.Role == resources.RoleProducer
}

// resolveContained is Resolve without targets outside a producer's own zone and namespace: a producer affects only the
// destinations of its own zone and namespace.
func (x *Destinations) resolveContained(from Referrer, ref *resources.TargetRef) ([]Target, string) {
	targets, problem := x.Resolve(from, ref)
	if problem != "" || from.Role != resources.RoleProducer {
		return targets, problem
	}
	own := slices.DeleteFunc(targets, func(t Target) bool {
		return t.Destination.zone != from.Zone || t.Destination.namespace != from.Namespace
	})
	if len(own) == 0 {
		return nil,
			describe(ref) + " is outside the zone and namespace of this producer policy: write a consumer policy for it"
	}
	return own, ""
}

// sections narrows destinations to the section that the reference names.
func (x *Destinations) sections(ref *resources.TargetRef, found []*Destination) ([]Target, string) {
	targets := make([]Target, 0, len(found))
	for _, d := range found {
		if ref.SectionName == "" {
			targets = append(targets, Target{Destination: d})
		} else if s, ok := d.SectionOf(ref.SectionName); ok {
			targets = append(targets, Target{Destination: d, Section: s})
		}
	}
	switch {
	case len(targets) > 0:
		return targets, ""
	case len(found) > 0:
		return nil, fmt.Sprintf("%s has no port %s", describe(ref), ref.SectionName)
	}
	return nil, describe(ref) + " resolves to nothing"
}

func (x *Destinations) byLabels(from Referrer, ref *resources.TargetRef) []*Destination {
	var smallest []*Destination
	first, labelled := true, x.labelled()
	for k, v := range ref.Labels {
		bucket := labelled[labelKey{resources.Type(ref.Kind), from.Mesh, label{k, v}}]
		if first || len(bucket) < len(smallest) {
			smallest, first = bucket, false
		}
	}
	own := meansOwn(from, ref)
	var out []*Destination
	for _, d := range smallest {
		if carries(d.Resource.Labels, ref.Labels) && (!own || d.namespace == from.Namespace) {
			out = append(out, d)
		}
	}
	return out
}

// meansOwn reports whether a reference by labels means the referrer's own namespace: a policy of a namespace names a
// resource and neither a namespace nor a zone, as a reference by name may. Source: seed 004, "Empty namespace in `to[].targetRef`".
func meansOwn(from Referrer, ref *resources.TargetRef) bool {
	_, named := ref.Labels[resources.LabelDisplayName]
	_, placed := ref.Labels[resources.LabelNamespace]
	_, zoned := ref.Labels[resources.LabelZone]
	return named && !placed && !zoned && from.Type != "" && from.Namespace != "" && from.Role != resources.RoleSystem
}

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (x *Destinations) byName(from Referrer, ref *resources.TargetRef) (*Destination, string) {
	at := nameKey{resources.Type(ref.Kind), from.Mesh, ref.Name}
	fits := func(d *Destination) bool {
		return ref.Namespace == "" || ref.Namespace == d.namespace || ref.Namespace == d.Resource.Namespace ||
			x.isSystem(from, ref.Namespace)
	}
	if found := keep(x.objects[at], fits); len(found) > 0 {
		if len(found) > 1 { // two owners can share a hash: a zone's policy prefers its own zone's
			if own := keep(found, func(d *Destination) bool { return d.zone == from.Zone }); len(own) > 0 {
				found = own
			}
		}
		return only(ref, found)
	}
	named := x.displayed[at]
	for _, zone := range x.zonesFor(from) {
		found := x.bestNamespace(from, ref, keep(named, func(d *Destination) bool { return d.zone == zone }))
		if len(found) > 0 {
			return only(ref, found)
		}
	}
	if from.Zone == "" {
		if found := x.bestNamespace(from, ref, named); len(found) > 0 {
			return only(ref, found)
		}
	}
	return nil, describe(ref) + " resolves to nothing"
}

// zonesFor returns the zones in which a display name is looked up, in order.
func (x *Destinations) zonesFor(from Referrer) []string {
	if from.Zone == "" {
		return []string{"", x.zone}
	}
	return []string{from.Zone, ""}
}

// isSystem reports whether a reference means a system namespace, in which copies live: the reader's, or that of the
// global in the global's own policies.
func (x *Destinations) isSystem(from Referrer, namespace string) bool {
	return namespace == x.systemNamespace || from.ofGlobal() && namespace == from.Namespace
}

// bestNamespace keeps the destinations in the namespace that the reference means. Without a namespace, it means the
// referrer's own. System policies, and references to types that live only in the system namespace, fall back to the
// system namespace; system policies then to all others. A namespace of a zone is not the global's, whatever its name.
func (x *Destinations) bestNamespace(from Referrer, ref *resources.TargetRef, named []*Destination) []*Destination {
	system := func(d *Destination) bool { return resources.OwnerOf(d.Resource, x.systemNamespace).IsOperator() }
	if ref.Namespace != "" {
		return keep(named, func(d *Destination) bool {
			return d.namespace == ref.Namespace ||
				x.isSystem(from, ref.Namespace) && (d.namespace == "" || d.zone == "" && system(d))
		})
	}
	found := keep(named, func(d *Destination) bool {
		return d.namespace == from.Namespace && (d.namespace == "" || d.zone == "" || !from.ofGlobal())
	})
	if len(found) > 0 {
		return found
	}
	if from.Role == resources.RoleSystem || ref.Kind == resources.KindMeshExternalService ||
		ref.Kind == resources.KindMeshMultiZoneService {
		found = keep(named, system)
	}
	if len(found) == 0 && from.Role == resources.RoleSystem {
		return named
	}
	return found
}

func keep(all []*Destination, fits func(*Destination) bool) []*Destination {
	var out []*Destination
	for _, d := range all {
		if fits(d) {
			out = append(out, d)
		}
	}
	return out
}

func only(ref *resources.TargetRef, found []*Destination) (*Destination, string) {
	if len(found) == 1 {
		return found[0], ""
	}
	kris := make([]string, len(found))
	for i, d := range found {
		kris[i] = d.KRI.String()
	}
	slices.Sort(kris)
	const shown = 4
	list := strings.Join(kris[:min(len(kris), shown)], ", ")
	if len(kris) > shown {
		list += fmt.Sprintf(" and %d more", len(kris)-shown)
	}
	return nil, fmt.Sprintf("%s means more than one thing (%s): add what distinguishes them", describe(ref), list)
}

// describe formats a reference for users.
func describe(ref *resources.TargetRef) string {
	if len(ref.Labels) > 0 {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(ref.Labels)) {
			parts = append(parts, k+": "+ref.Labels[k])
		}
		return fmt.Sprintf("%s with the labels %s", ref.KindOrMesh(), strings.Join(parts, ", "))
	}
	if ref.Namespace != "" {
		return fmt.Sprintf("%s %s in namespace %s", ref.KindOrMesh(), ref.Name, ref.Namespace)
	}
	return fmt.Sprintf("%s %s", ref.KindOrMesh(), ref.Name)
}

// Problems returns all problems of a policy itself, independent of the proxies that it selects, for its conditions:
// what does not decode, references in `to` that resolve to nothing or to more than one thing, backends of routes that
// no proxy sends to, and clients in `from` that cannot be distinguished.
func (x *Destinations) Problems(p *Policy) []Warning {
	problems, _ := x.ProblemsAndSubsets(p)
	return problems
}

// ProblemsAndSubsets returns, besides Problems, the subsets of services that the policy sends to, if it is a route.
func (x *Destinations) ProblemsAndSubsets(p *Policy) (problems []Warning, subsets []Subset) {
	out := slices.Concat(p.problems, p.items.problems, x.gatewayProblems(p))
	for i := range p.items.to {
		it := &p.items.to[i]
		if IsDestination(resources.Type(it.ref.Kind)) {
			if _, problem := x.resolveContained(p.Referrer(), it.ref); problem != "" {
				out = append(out, it.referenceProblem(problem))
			}
		}
		warnings, sent := x.checkBackends(it)
		out, subsets = append(out, warnings...), append(subsets, sent...)
	}
	return append(out, p.ByTags()...), subsets
}

func (i *item) referenceProblem(problem string) Warning {
	field := fmt.Sprintf("to[%d].targetRef", i.index)
	return Warning{Policy: i.policy.KRI, Field: field, Text: writtenBy(i.policy).text(field, i.ref, problem)}
}
