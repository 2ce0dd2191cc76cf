package identity

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Assigned is the identity of a Dataplane and the resource that gives it.
type Assigned struct {
	ID spiffeid.ID
	// By is the MeshIdentity that decided; nil if none did.
	By *resources.Resource
	// Spire reports that certificates come from the SPIRE agent beside the Dataplane, not from the zone. Wait is how
	// long the Dataplane waits for the first one; zero means the proxy's own default.
	Spire bool
	Wait  time.Duration
	// Lifetime is how long a certificate is valid.
	Lifetime time.Duration
	// meshDomain names the mesh domain whose authorities sign.
	meshDomain string
}

// Assignments give the Dataplanes of a mesh in one zone their identities. They are immutable.
type Assignments struct {
	mesh, zone string
	list       []*assignment
	ready      func(meshDomain string) bool
}

// assignment is a MeshIdentity that selects Dataplanes, read for one zone.
type assignment struct {
	resource   *resources.Resource
	spec       *resources.MeshIdentity
	labels     map[string]string
	domain     spiffeid.TrustDomain
	meshDomain string
	// err is the reason why the assignment has no effect.
	err error
}

// AssignmentsOf reads the MeshIdentities in list that apply in a zone: its own and the global's. It skips a
// MeshIdentity whose mesh domain is not ready, as if it did not exist; if ready is nil, all are ready. These are the
// rules of MeshIdentity in Kuma's KDS.
func AssignmentsOf(list iter.Seq[*resources.Resource], mesh, zone string, ready func(meshDomain string) bool) *Assignments {
	out := &Assignments{mesh: mesh, zone: zone, ready: ready}
	for r := range list {
		if r.Zone() != "" && r.Zone() != zone {
			continue
		}
		if one := readAssignment(r, mesh, zone); one != nil {
			out.list = append(out.list, one)
		}
	}
	slices.SortFunc(out.list, func(a, b *assignment) int {
		return cmp.Or(cmp.Compare(len(b.labels), len(a.labels)),
			strings.Compare(a.resource.DisplayName(), b.resource.DisplayName()),
			strings.Compare(b.resource.Zone(), a.resource.Zone()))
	})
	return out
}

// AssignmentsIn is AssignmentsOf for the resources in a store.
func AssignmentsIn(snap store.Snapshot, mesh, zone string, ready func(meshDomain string) bool) *Assignments {
	return AssignmentsOf(snap.List(store.Query{Type: resources.TypeMeshIdentity, Mesh: mesh}), mesh, zone, ready)
}

// readAssignment returns nil for a MeshIdentity that selects nothing.
func readAssignment(r *resources.Resource, mesh, zone string) *assignment {
	spec, err := resources.SpecAs[resources.MeshIdentity](r)
	if err != nil {
		return nil
	}
	labels, ok := spec.Dataplanes()
	if !ok {
		return nil
	}
	one := &assignment{resource: r, spec: spec, labels: labels}
	name, err := spec.TrustDomainIn(mesh, zone)
	if err == nil {
		one.domain, err = spiffeid.TrustDomainFromString(name)
	}
	switch {
	case err != nil:
		one.err = fmt.Errorf("spiffeID.trustDomain: %w", err)
	case r.Zone() != "" && !resources.IsTrustDomainOf(name, zone):
		one.err = fmt.Errorf("spiffeID.trustDomain: zone %s may only speak for *.%s%s, not for %s", zone, zone,
			trustDomainSuffix, name)
	case spec.Provider.Type != resources.ProviderBundled && spec.Provider.Type != resources.ProviderSpire:
		one.err = fmt.Errorf("provider.type: %q is not known here", spec.Provider.Type)
	}
	one.meshDomain = MeshDomain(mesh, zone, name)
	return one
}

func (i *assignment) bundled() bool {
	return i.err == nil && i.spec.Provider.Type == resources.ProviderBundled
}

// Of returns the identity of a Dataplane. Among the MeshIdentities that select it, the one with the most labels
// decides, then the one with the smallest name. If none selects it, IDOf decides, in the zone's own trust domain.
// Errors wrap ErrIdentity.
func (x *Assignments) Of(dp *resources.Resource) (Assigned, error) {
	for _, one := range x.list {
		if one.err != nil || !carries(dp.Labels, one.labels) {
			continue
		}
		if one.bundled() && x.ready != nil && !x.ready(one.meshDomain) {
			continue
		}
		return one.assign(dp)
	}
	domain, err := TrustDomainOf(x.mesh, x.zone)
	if err != nil {
		return Assigned{}, err
	}
	id, err := IDOf(dp, domain)
	return Assigned{ID: id, Lifetime: Lifetime, meshDomain: x.mesh}, err
}

func (i *assignment) assign(dp *resources.Resource) (Assigned, error) {
	out := Assigned{By: i.resource, Spire: i.spec.Provider.Type == resources.ProviderSpire, Lifetime: Lifetime,
		meshDomain: i.meshDomain}
	if b := i.spec.Provider.Bundled; b != nil && b.CertificateParameters != nil {
		if d, err := time.ParseDuration(b.CertificateParameters.Expiry); err == nil {
			out.Lifetime = min(max(d, shortestLifetime), Lifetime)
		}
	}
	if s := i.spec.Provider.Spire; s != nil && s.Agent != nil {
		out.Wait, _ = time.ParseDuration(s.Agent.Timeout)
	}
	account := dp.HomeNamespace() != "" && dp.Labels[resources.LabelServiceAccount] != ""
	template, err := resources.ParseIdentityTemplate(i.spec.PathTemplate(account), resources.PathVariables())
	var path string
	if err == nil {
		path, err = template.Render(func(variable string) string { return i.value(dp, variable) },
			func(key string) string { return dp.Labels[key] })
	}
	if err == nil {
		out.ID, err = spiffeid.FromPath(i.domain, path)
	}
	if err == nil && out.ID.Path() == "" {
		err = errNoPath
	}
	if err != nil {
		return out, fmt.Errorf("%w: %s: %s: %w", ErrIdentity, dp.Key, resources.KRIOf(i.resource), err)
	}
	return out, nil
}

func (i *assignment) value(dp *resources.Resource, variable string) string {
	switch variable {
	case "TrustDomain":
		return i.domain.Name()
	case "Namespace":
		return dp.HomeNamespace()
	case "ServiceAccount":
		return dp.Labels[resources.LabelServiceAccount]
	}
	return cmp.Or(dp.Labels[resources.LabelWorkload], dp.DisplayName())
}

// carries reports whether have contains all labels of want.
func carries(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Effect is the effect of a MeshIdentity in a zone.
type Effect struct {
	// Problem is the reason why it gives no identities there; empty if it does.
	Problem string
	// Spire reports that certificates come from SPIRE. Otherwise authorities of MeshDomain sign. Unpublished reports
	// that no MeshTrust of the zone publishes them.
	Spire       bool
	MeshDomain  string
	Unpublished bool
}

// EffectOf returns the effect of a MeshIdentity in a zone.
func EffectOf(r *resources.Resource, zone string) Effect {
	one := readAssignment(r, r.Mesh, zone)
	switch {
	case one == nil:
		return Effect{Problem: "it has no selector.dataplane, so it selects nothing"}
	case one.err != nil:
		return Effect{Problem: one.err.Error()}
	}
	return Effect{Spire: !one.bundled(), MeshDomain: one.meshDomain, Unpublished: one.unpublished() && one.meshDomain != r.Mesh}
}

func (i *assignment) unpublished() bool {
	b := i.spec.Provider.Bundled
	return b != nil && b.MeshTrustCreation == resources.MeshTrustDisabled
}

// wanted is what MeshIdentities require of a mesh domain.
type wanted struct {
	// unpublished reports that the zone publishes no MeshTrust for the mesh domain.
	unpublished bool
	// ca is the authority that the operator provides; nil if the zone makes one. selfSigned reports whether it may be a
	// root.
	ca         *resources.ProvidedCA
	selfSigned bool
}

// meshDomains returns the mesh domains for which MeshIdentities require authorities. The zone's own mesh domain is
// among them only if a MeshIdentity provides its authority. If several provide one, the MeshIdentity that comes first
// for Dataplanes decides.
func (x *Assignments) meshDomains() map[string]*wanted {
	out := map[string]*wanted{}
	for _, one := range x.list {
		bundled := one.spec.Provider.Bundled
		gives := bundled != nil && bundled.CA != nil
		if !one.bundled() || one.meshDomain == x.mesh && !gives {
			continue
		}
		ask := out[one.meshDomain]
		if ask == nil {
			ask = &wanted{unpublished: one.meshDomain != x.mesh}
			out[one.meshDomain] = ask
		}
		ask.unpublished = ask.unpublished && one.unpublished()
		if gives && ask.ca == nil {
			ask.ca, ask.selfSigned = bundled.CA, bundled.InsecureAllowSelfSigned
		}
	}
	return out
}
