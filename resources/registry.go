package resources

import (
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// Scope says whether a type's resources belong to a mesh.
type Scope string

// The scopes, spelled as the HTTP API spells them.
const (
	ScopeMesh   Scope = "Mesh"
	ScopeGlobal Scope = "Global"
)

// Side is a set of servers.
type Side uint8

// The servers a user may write a type on. Neither: the type is read-only for users.
const (
	OnGlobal Side = 1 << iota
	OnZone
	Nowhere  Side = 0
	Anywhere      = OnGlobal | OnZone
)

// Codec says how a type's spec travels in KumaResource.spec.
type Codec uint8

const (
	// JSON is the spec's JSON text in an Any whose type URL is empty; in the HTTP API the spec is nested under "spec".
	JSON Codec = iota
	// Protobuf is a message in an Any with its own type URL; in the HTTP API the fields are at the top level.
	Protobuf
)

// PolicyShape says which lists a policy type has.
type PolicyShape struct {
	To, From, Rules bool
	// FromAsRules: entries of `from` mean the same as entries of `rules`.
	FromAsRules bool
	// Single: one `default` for the whole proxy, no lists.
	Single bool
	// Route: `to` items carry `rules` (matches and backends) instead of a `default`.
	Route bool
}

// Descriptor is one row of the registry. Nobody changes a Descriptor.
type Descriptor struct {
	Type Type
	// Path is the plural in URLs; AltPath another spelling of it, or empty.
	Path, AltPath string
	// Short is the type's part of a KRI; empty where resources of the type have no KRI.
	Short string
	Scope Scope
	// GlobalToZone, ZoneToGlobal and AcrossZones say which ways resources of the type may travel; AcrossZones is
	// global to zone for resources that another zone wrote.
	GlobalToZone, ZoneToGlobal, AcrossZones bool
	WrittenOn                               Side
	Codec                                   Codec
	HasStatus                               bool
	// KeepName: the name is not hashed on its way to a zone.
	KeepName bool
	// Policy is nil for types that are not policies.
	Policy *PolicyShape
	// Sensitive says where specs of the type hold secrets; nil for types that have no place for one. See Sensitive.
	Sensitive *Sensitive

	newSpec func() any
}

// table is the registry, in order of dependency: what others refer to comes first, and types are sent in this order.
// Policies stand in the order in which they are evaluated and shown.
// Source: kuma-wire, "Resource types"; seed 003; MeshTrust crosses zones here (design, section 4, "What crosses").
var table = []Descriptor{
	{Type: TypeMesh, Path: "meshes", Short: "m", Scope: ScopeGlobal, GlobalToZone: true, WrittenOn: OnGlobal, Codec: Protobuf, KeepName: true, Sensitive: anywhere(), newSpec: specOf[meshpb.Mesh]},
	{Type: TypeZone, Path: "zones", Short: "z", Scope: ScopeGlobal, WrittenOn: OnGlobal, Codec: Protobuf, newSpec: specOf[systempb.Zone]},
	{Type: TypeZoneInsight, Path: "zone-insights", Scope: ScopeGlobal, Codec: Protobuf, newSpec: specOf[systempb.ZoneInsight]},
	{Type: TypeAccessRole, Path: "accessroles", AltPath: "access-roles", Scope: ScopeGlobal, WrittenOn: Anywhere, newSpec: specOf[AccessRole]},
	{Type: TypeAccessRoleBinding, Path: "accessrolebindings", AltPath: "access-role-bindings", Scope: ScopeGlobal, WrittenOn: Anywhere, newSpec: specOf[AccessRoleBinding]},
	{Type: TypeMeshTrust, Path: "meshtrusts", Short: "mtrust", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, AcrossZones: true, WrittenOn: Anywhere, HasStatus: true, newSpec: specOf[MeshTrust]},
	{Type: TypeMeshIdentity, Path: "meshidentities", Short: "mid", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, HasStatus: true, Sensitive: anywhere("provider.bundled.ca.privateKey"), newSpec: specOf[MeshIdentity]},
	{Type: TypeDataplane, Path: "dataplanes", Short: "dp", Scope: ScopeMesh, ZoneToGlobal: true, WrittenOn: OnZone, Codec: Protobuf, newSpec: specOf[meshpb.Dataplane]},
	{Type: TypeDataplaneInsight, Path: "dataplane-insights", Scope: ScopeMesh, ZoneToGlobal: true, Codec: Protobuf, newSpec: specOf[meshpb.DataplaneInsight]},
	{Type: TypeZoneIngress, Path: "zoneingresses", AltPath: "zone-ingresses", Short: "zi", Scope: ScopeGlobal, ZoneToGlobal: true, AcrossZones: true, WrittenOn: OnZone, Codec: Protobuf, newSpec: specOf[meshpb.ZoneIngress]},
	{Type: TypeMeshService, Path: "meshservices", Short: "msvc", Scope: ScopeMesh, ZoneToGlobal: true, AcrossZones: true, WrittenOn: OnZone, HasStatus: true, newSpec: specOf[MeshService]},
	{Type: TypeMeshExternalService, Path: "meshexternalservices", Short: "extsvc", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, HasStatus: true, Sensitive: anywhere("tls.verification.clientKey"), newSpec: specOf[MeshExternalService]},
	{Type: TypeMeshMultiZoneService, Path: "meshmultizoneservices", Short: "mzsvc", Scope: ScopeMesh, GlobalToZone: true, WrittenOn: OnGlobal, HasStatus: true, newSpec: specOf[MeshMultiZoneService]},
	{Type: TypeMeshGateway, Path: "meshgateways", Short: "mgw", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, Codec: Protobuf, Sensitive: anywhere("conf.listeners[].tls.certificates[]"), newSpec: specOf[meshpb.MeshGateway]},
	{Type: TypeMeshReferenceGrant, Path: "meshreferencegrants", Short: "mrg", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, AcrossZones: true, WrittenOn: Anywhere, newSpec: specOf[MeshReferenceGrant]},
	{Type: TypeHTTPRouteGroup, Path: "httproutegroups", Short: "hrg", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[HTTPRouteGroup]},
	{Type: TypeTCPRoute, Path: "tcproutes", Short: "tcpr", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[TCPRoute]},
	{Type: TypeTrafficTarget, Path: "traffictargets", Short: "tt", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[TrafficTarget]},

	policy(TypeMeshHTTPRoute, "meshhttproutes", "mhttpr", PolicyShape{To: true, Route: true}),
	policy(TypeMeshTCPRoute, "meshtcproutes", "mtcpr", PolicyShape{To: true, Route: true}),
	policy(TypeMeshTLS, "meshtlses", "mtls", PolicyShape{From: true, Rules: true, FromAsRules: true}),
	policy(TypeMeshLoadBalancingStrategy, "meshloadbalancingstrategies", "mlbs", PolicyShape{To: true}),
	policy(TypeMeshPassthrough, "meshpassthroughs", "mp", PolicyShape{Single: true}),
	withStatus(policy(TypeMeshAccessLog, "meshaccesslogs", "mal", PolicyShape{To: true, From: true, Rules: true, FromAsRules: true})),
	withStatus(policy(TypeMeshTrace, "meshtraces", "mtr", PolicyShape{Single: true})),
	policy(TypeMeshFaultInjection, "meshfaultinjections", "mfi", PolicyShape{To: true, From: true, Rules: true, FromAsRules: true}),
	policy(TypeMeshRateLimit, "meshratelimits", "mrl", PolicyShape{To: true, From: true, Rules: true, FromAsRules: true}),
	withoutSecrets(policy(TypeMeshTimeout, "meshtimeouts", "mt", PolicyShape{To: true, From: true, Rules: true, FromAsRules: true})),
	withoutSecrets(policy(TypeMeshTrafficPermission, "meshtrafficpermissions", "mtp", PolicyShape{From: true, Rules: true})),
	policy(TypeMeshHealthCheck, "meshhealthchecks", "mhc", PolicyShape{To: true}),
	policy(TypeMeshCircuitBreaker, "meshcircuitbreakers", "mcb", PolicyShape{To: true, From: true, Rules: true, FromAsRules: true}),
	policy(TypeMeshRetry, "meshretries", "mr", PolicyShape{To: true}),
	withStatus(policy(TypeMeshMetric, "meshmetrics", "mm", PolicyShape{Single: true})),
	policy(TypeMeshProxyPatch, "meshproxypatches", "mpp", PolicyShape{Single: true}),
}

// private are the types that only stores know: no user and no peer can name them.
var private = []Descriptor{
	{Type: TypeSecret, Scope: ScopeGlobal, newSpec: specOf[Secret]},
	{Type: TypeZoneClaim, Scope: ScopeGlobal, newSpec: specOf[ZoneClaim]},
}

func specOf[T any]() any { return new(T) }

func policy(t Type, path, short string, shape PolicyShape) Descriptor {
	return Descriptor{
		Type: t, Path: path, Short: short, Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true, AcrossZones: true,
		WrittenOn: Anywhere, Policy: &shape, Sensitive: anywhere(), newSpec: specOf[Policy],
	}
}

// withoutSecrets is for policies all of whose fields are known, and none is a secret.
func withoutSecrets(d Descriptor) Descriptor {
	d.Sensitive = nil
	return d
}

func withStatus(d Descriptor) Descriptor {
	d.HasStatus = true
	return d
}

var (
	byType  = index(func(d *Descriptor) []string { return []string{string(d.Type)} })
	byPath  = index(func(d *Descriptor) []string { return []string{d.Path, d.AltPath} })
	byShort = index(func(d *Descriptor) []string { return []string{d.Short} })
)

func index(keys func(*Descriptor) []string) map[string]*Descriptor {
	m := make(map[string]*Descriptor, len(table))
	for i := range table {
		for _, k := range keys(&table[i]) {
			if k != "" {
				m[k] = &table[i]
			}
		}
	}
	return m
}

// Descriptors returns all types, in order of dependency. The caller must not change the slice's elements.
func Descriptors() []*Descriptor {
	out := make([]*Descriptor, len(table))
	for i := range table {
		out[i] = &table[i]
	}
	return out
}

// Stored returns the descriptors of all types that a store may hold: those of Descriptors, and the private ones.
func Stored() []*Descriptor {
	out := Descriptors()
	for i := range private {
		out = append(out, &private[i])
	}
	return out
}

// LookupStored is Lookup among all types that a store may hold. It is for stores: what a user or a peer names is for Lookup.
func LookupStored(t Type) (*Descriptor, bool) {
	for i := range private {
		if private[i].Type == t {
			return &private[i], true
		}
	}
	return Lookup(t)
}

// Lookup returns the descriptor of a type and whether the registry knows it.
func Lookup(t Type) (*Descriptor, bool) {
	d, ok := byType[string(t)]
	return d, ok
}

// LookupPath finds a type by its plural path in a URL.
func LookupPath(path string) (*Descriptor, bool) {
	d, ok := byPath[path]
	return d, ok
}

// LookupShort finds a type by the short name that KRIs carry.
func LookupShort(short string) (*Descriptor, bool) {
	d, ok := byShort[short]
	return d, ok
}
