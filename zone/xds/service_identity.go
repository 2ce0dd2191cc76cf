package xds

import (
	"maps"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// identities returns the secret by which clients of a port verify the server: the mesh's authorities, and the SPIFFE
// IDs of the service. It is not part of the cluster, so a new Dataplane replaces no cluster.
func (n *network) identities(port *usedPort, t *trust) (*resource, error) {
	exact, prefixes := map[string]bool{}, map[string]bool{}
	snap, mesh := n.store.Snapshot(), port.mesh()
	who, given := n.assignments(mesh), identity.GrantsIn(snap, mesh)
	// A zone may have any number of services behind a port: its trust domains are looked up once. Those in whole are
	// all in prefixes.
	ofZone, whole := map[string]map[string]bool{}, map[string]bool{}
	if port.egress {
		for _, m := range n.egresses(mesh) {
			if it, err := who.Of(m.dataplane); err == nil {
				exact[it.ID.String()] = true
			}
		}
	}
	domainsOf := func(zone string) map[string]bool {
		domains := ofZone[zone]
		if domains == nil {
			domains = given.DomainsOf(snap, zone)
			domains[resources.ZoneTrustDomain(mesh, zone)] = true
			ofZone[zone] = domains
		}
		return domains
	}
	anybodyIn := func(zone string) {
		if whole[zone] {
			return
		}
		whole[zone] = true
		for domain := range domainsOf(zone) {
			prefixes["spiffe://"+domain+"/"] = true
		}
	}
	for _, s := range port.services {
		switch {
		case s.Zone() == n.home.Zone:
			n.addIdentities(s, who, exact)
		case names(s):
			addForeign(s, domainsOf(s.Zone()), exact)
		default:
			anybodyIn(s.Zone())
		}
	}
	if port.tagged != nil {
		n.addCarriers(port.tagged, who, exact)
		for i := range port.tagged.Away {
			if port.tagged.Away[i].Service == nil {
				anybodyIn(port.tagged.Away[i].Zone)
			}
		}
	}
	context := &tlsv3.CertificateValidationContext{CustomValidatorConfig: t.validator, MatchTypedSubjectAltNames: identityMatchers(exact, prefixes)}
	return newResource(kindSecret, port.trust(), &tlsv3.Secret{
		Name: port.trust(), Type: &tlsv3.Secret_ValidationContext{ValidationContext: context},
	})
}

// identityMatchers returns matchers of SPIFFE IDs and their prefixes. Without any, nobody matches: Envoy takes an empty list
// for any workload of the mesh.
func identityMatchers(exact, prefixes map[string]bool) (out []*tlsv3.SubjectAltNameMatcher) {
	for _, id := range slices.Sorted(maps.Keys(exact)) {
		out = append(out, uriMatcher(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: id}}))
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		out = append(out, uriMatcher(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}))
	}
	if len(out) == 0 {
		out = append(out, uriMatcher(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "nobody"}}))
	}
	return out
}

func uriMatcher(m *matcherv3.StringMatcher) *tlsv3.SubjectAltNameMatcher {
	return &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: m}
}

// names reports whether a service lists its SPIFFE IDs itself.
func names(s *resources.Resource) bool {
	spec, err := resources.SpecAs[resources.MeshService](s)
	return err != nil ||
		slices.ContainsFunc(spec.Identities, func(id resources.ServiceIdentity) bool { return id.Type == "SpiffeID" })
}

// addForeign adds the SPIFFE IDs that a service of another zone names, if they are in trust domains of that zone.
// Otherwise its clients would accept workloads with a foreign ID in the service's place.
func addForeign(s *resources.Resource, domains, exact map[string]bool) {
	spec, err := resources.SpecAs[resources.MeshService](s)
	if err != nil {
		return
	}
	for _, named := range spec.Identities {
		if id, err := spiffeid.FromString(named.Value); named.Type == "SpiffeID" && err == nil &&
			domains[id.TrustDomain().Name()] {
			exact[named.Value] = true
		}
	}
}

// addCarriers adds the SPIFFE IDs of the Dataplanes of this zone that tags mean.
func (n *network) addCarriers(t *matching.Tagged, who *identity.Assignments, exact map[string]bool) {
	for m := range n.candidatesIn(t.Mesh) {
		if len(t.Carriers(m.match)) == 0 {
			continue
		}
		if it, err := who.Of(m.dataplane); err == nil {
			exact[it.ID.String()] = true
		}
	}
}

// addIdentities adds the SPIFFE IDs of a service of this zone: the listed ones, or else those of the Dataplanes that it
// selects. A MeshService that the zone made of a Kubernetes Service lists them for other zones; here they are known
// sooner. For a service of another zone that lists none, and whose Dataplanes are unknown here, it accepts any workload
// in that zone's trust domains.
func (n *network) addIdentities(s *resources.Resource, who *identity.Assignments, exact map[string]bool) {
	spec, err := resources.SpecAs[resources.MeshService](s)
	if err != nil {
		return
	}
	if names(s) && !n.home.Discovered(s) {
		for _, id := range spec.Identities {
			if id.Type == "SpiffeID" {
				exact[id.Value] = true
			}
		}
		return
	}
	for _, m := range n.candidates(s) {
		for i := range m.match.Inbounds {
			if !matching.Serves(s, m.match, &m.match.Inbounds[i], "") {
				continue
			}
			if it, err := who.Of(m.dataplane); err == nil {
				exact[it.ID.String()] = true
			}
			break
		}
	}
}
