package exchange

import "slices"

// Features is the set of features that a peer announced. Unknown names are dropped.
type Features uint32

// The features that change what a peer is sent. The first four are Kuma's (Kuma's wire format, "Node in
// DeltaDiscoveryRequest"), the others Causeway's own.
const (
	// FeatureHashSuffix: the peer expects hashed names.
	FeatureHashSuffix Features = 1 << iota
	// FeatureProducerPolicies: the peer accepts producer policies of other zones.
	FeatureProducerPolicies
	// FeatureOptionalTargetRef: the peer accepts policies without a top-level targetRef.
	FeatureOptionalTargetRef
	// FeatureZoneToken is announced for completeness; nothing depends on it yet.
	FeatureZoneToken
	// FeatureHTTPPermissions: the peer evaluates path and method, and knows the short form and spelling of our
	// permissions.
	FeatureHTTPPermissions
	// FeatureResolvedReferences: the peer accepts references that name the copy (seed 004, "Cross-resource
	// references").
	FeatureResolvedReferences
	// FeatureParts: the peer joins a list that comes in several messages, and accepts a full list in the middle of a
	// stream.
	FeatureParts
	// FeatureResume: the peer understands initial_resource_versions.
	FeatureResume
	// FeatureReports: the peer accepts reports on what proxies have acknowledged.
	FeatureReports
	// FeatureTraces: the peer accepts trace contexts with changes. Only servers with tracing announce it.
	FeatureTraces
	// FeatureReferenceGrants: the peer enforces the grants of routes to other namespaces, and knows the zones that a
	// MeshMultiZoneService lists.
	FeatureReferenceGrants
	// FeatureHiddenSecrets: the peer accepts the hash of a secret that it does not use, instead of the secret.
	FeatureHiddenSecrets
	// FeatureOwners: the peer reads the role label to tell whether a service or a grant belongs to its zone's operator.
	FeatureOwners
	// FeatureReportFields: the peer reads reports in the fields of their message, and not only as JSON.
	FeatureReportFields
	// FeatureFrames: the peer opens frames, in which the global sends it resources that were compressed once for all
	// zones.
	FeatureFrames
	// FeatureQuestions: the zone takes questions about its proxies, and answers them.
	FeatureQuestions
	// FeatureReported: among them what its proxies reported.
	FeatureReported
)

const (
	featureNameHTTPPermissions = "causeway-http-permissions"
	// FeaturePingHealth goes only into the gRPC metadata: the zone calls HealthCheck.
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
	{FeatureReportFields, "causeway-report-fields"},
	{FeatureFrames, "causeway-frames"},
	{FeatureQuestions, "causeway-questions"},
	{FeatureReported, "causeway-reported"},
}

// OwnFeatures returns the features that Causeway announces, FeatureTraces only with tracing.
func OwnFeatures() Features {
	var all Features
	for _, f := range featureNames {
		all |= f.feature
	}
	return all
}

// Has reports whether all of want are in f.
func (f Features) Has(want Features) bool { return f&want == want }

// Names returns the names on the wire.
func (f Features) Names() []string {
	names := make([]string, 0, len(featureNames))
	for _, n := range featureNames {
		if f.Has(n.feature) {
			names = append(names, n.name)
		}
	}
	return names
}

// ParseFeatures is the inverse of Names; it skips unknown names.
func ParseFeatures(names []string) Features {
	var f Features
	for _, n := range featureNames {
		if slices.Contains(names, n.name) {
			f |= n.feature
		}
	}
	return f
}

// ChangeBytes are the features that change how a resource is encoded, and not only whether it is sent.
const ChangeBytes = FeatureHashSuffix | FeatureHTTPPermissions | FeatureResolvedReferences | FeatureReferenceGrants | FeatureHiddenSecrets | FeatureOwners
