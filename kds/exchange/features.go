package exchange

import "slices"

// Features is the set of abilities that a peer announced. Names that we do not know are not kept.
type Features uint16

// The features that change what a peer is sent. The first four are those of the ecosystem (Kuma's wire format, "Node in
// DeltaDiscoveryRequest"), the others Causeway's own.
const (
	// FeatureHashSuffix: the peer expects hashed names.
	FeatureHashSuffix Features = 1 << iota
	// FeatureProducerPolicies: the peer takes producer policies of other zones.
	FeatureProducerPolicies
	// FeatureOptionalTargetRef: the peer takes policies without a top-level targetRef.
	FeatureOptionalTargetRef
	// FeatureZoneToken is announced for completeness; nothing depends on it yet.
	FeatureZoneToken
	// FeatureHTTPPermissions: the peer judges path and method, and knows the sugar and spelling of our permissions.
	FeatureHTTPPermissions
	// FeatureResolvedReferences: the peer takes references that name the copy (seed 004, "Cross-resource references").
	FeatureResolvedReferences
	// FeatureParts: the peer joins a list that comes in several messages, and a full list in the middle of a stream.
	FeatureParts
	// FeatureResume: the peer understands initial_resource_versions.
	FeatureResume
	// FeatureReports: the peer takes reports of what proxies have acknowledged.
	FeatureReports
	// FeatureTraces: the peer takes trace contexts with changes. It is announced only by servers that trace.
	FeatureTraces
	// FeatureReferenceGrants: the peer sends nobody where a route may not, and knows the zones that a MeshMultiZoneService lists.
	FeatureReferenceGrants
	// FeatureHiddenSecrets: the peer takes the hash of a secret in place of one that it does not use.
	FeatureHiddenSecrets
	// FeatureOwners: the peer reads from the label of the role whether a service or a grant is the operator's of its zone.
	FeatureOwners
)

const (
	featureNameHTTPPermissions = "causeway-http-permissions"
	// featurePingHealth goes into the gRPC metadata only: the zone calls HealthCheck.
	FeaturePingHealth = "zone-ping-health"
)

// featureNames are the names on the wire, in the order in which they are announced.
var featureNames = []struct {
	feature Features
	name    string
}{
	{FeatureZoneToken, "zone-token"},
	{FeatureHashSuffix, "hash-suffix"},
	{FeatureProducerPolicies, "producer-policy-flow"},
	{FeatureOptionalTargetRef, "optional-top-level-target-ref"},
	{FeatureHTTPPermissions, featureNameHTTPPermissions},
	{FeatureResolvedReferences, "causeway-resolved-references"},
	{FeatureParts, "causeway-parts"},
	{FeatureResume, "causeway-resume"},
	{FeatureReports, "causeway-reports"},
	{FeatureTraces, "causeway-traces"},
	{FeatureReferenceGrants, "causeway-reference-grants"},
	{FeatureHiddenSecrets, "causeway-hidden-secrets"},
	{FeatureOwners, "causeway-owners"},
}

// OwnFeatures is what Causeway announces, FeatureTraces only where it traces.
func OwnFeatures() Features {
	var all Features
	for _, f := range featureNames {
		all |= f.feature
	}
	return all
}

// Has reports whether all of want are in f.
func (f Features) Has(want Features) bool { return f&want == want }

// Names returns the names that go on the wire.
func (f Features) Names() []string {
	names := make([]string, 0, len(featureNames))
	for _, n := range featureNames {
		if f.Has(n.feature) {
			names = append(names, n.name)
		}
	}
	return names
}

// ParseFeatures is the inverse of Names; unknown names are skipped.
func ParseFeatures(names []string) Features {
	var f Features
	for _, n := range featureNames {
		if slices.Contains(names, n.name) {
			f |= n.feature
		}
	}
	return f
}

// ChangeBytes are the features that change how a resource is sent, and not only whether it is.
const ChangeBytes = FeatureHashSuffix | FeatureHTTPPermissions | FeatureResolvedReferences | FeatureReferenceGrants | FeatureHiddenSecrets | FeatureOwners
