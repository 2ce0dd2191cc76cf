package xds

import (
	"maps"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// identities is the secret by which clients of a port verify who answers: the mesh's authorities, and which SPIFFE IDs are the
// service's. It is a secret and not part of the cluster, so that a new Dataplane moves no cluster.
func (n *network) identities(port *usedPort, t *trust) (*resource, error) {
	exact, prefixes := map[string]bool{}, map[string]bool{}
	snap, mesh := n.store.Snapshot(), port.mesh()
	who, given := n.assignments(mesh), identity.GrantsIn(snap, mesh)
	for _, s := range port.services {
		n.addIdentities(s, who, exact)
		if s.Zone() != n.home.Zone && !names(s) {
			prefixes["spiffe://"+resources.ZoneTrustDomain(mesh, s.Zone())+"/"] = true
			for domain := range given.DomainsOf(snap, s.Zone()) {
				prefixes["spiffe://"+domain+"/"] = true
			}
		}
	}
	context := &tlsv3.CertificateValidationContext{CustomValidatorConfig: t.validator}
	for _, id := range slices.Sorted(maps.Keys(exact)) {
		context.MatchTypedSubjectAltNames = append(context.MatchTypedSubjectAltNames, uriMatcher(
			&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: id}}))
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		context.MatchTypedSubjectAltNames = append(context.MatchTypedSubjectAltNames, uriMatcher(
			&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}))
	}
	if len(context.MatchTypedSubjectAltNames) == 0 { // an empty list would let everybody of the mesh answer
		context.MatchTypedSubjectAltNames = append(context.MatchTypedSubjectAltNames, uriMatcher(
			&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "nobody"}}))
	}
	return newResource(kindSecret, port.trust(), &tlsv3.Secret{
		Name: port.trust(), Type: &tlsv3.Secret_ValidationContext{ValidationContext: context},
	})
}

func uriMatcher(m *matcherv3.StringMatcher) *tlsv3.SubjectAltNameMatcher {
	return &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: m}
}

// names reports whether a service says itself as whom it may answer.
func names(s *resources.Resource) bool {
	spec, err := resources.SpecAs[resources.MeshService](s)
	return err != nil || slices.ContainsFunc(spec.Identities, func(id resources.ServiceIdentity) bool { return id.Type == "SpiffeID" })
}

// addIdentities adds as whom a service may answer: the SPIFFE IDs that it names. One of this zone that names none may answer as the
// Dataplanes that it selects, and one of another zone, whose Dataplanes are not known here, as anybody in the trust domains of that zone.
func (n *network) addIdentities(s *resources.Resource, who *identity.Assignments, exact map[string]bool) {
	spec, err := resources.SpecAs[resources.MeshService](s)
	if err != nil {
		return
	}
	for _, id := range spec.Identities {
		if id.Type == "SpiffeID" {
			exact[id.Value] = true
		}
	}
	if names(s) || s.Zone() != n.home.Zone {
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
