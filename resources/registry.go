package resources

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// Scope reports whether a type's resources belong to a mesh.
type Scope string

// The scopes, in the spelling of the HTTP API.
const (
	ScopeMesh   Scope = "Mesh"
	ScopeGlobal Scope = "Global"
)

// Side is a set of servers.
type Side uint8

// The servers that users may write a type on. Nowhere makes the type read-only for users.
const (
	OnGlobal Side = 1 << iota
	OnZone
	Nowhere  Side = 0
	Anywhere      = OnGlobal | OnZone
)

// Codec is the encoding of a type's spec in KumaResource.spec.
type Codec uint8

const (
	// JSON encodes the spec as JSON text in an Any with an empty type URL. In the HTTP API the spec is under "spec".
	JSON Codec = iota
	// Protobuf encodes the spec as a message in an Any with its own type URL. In the HTTP API the fields are at the top
	// level.
	Protobuf
)

// PolicyShape describes the lists of a policy type.
type PolicyShape struct {
	To, From, Rules bool
	// FromAsRules means that entries of `from` have the same meaning as entries of `rules`.
	FromAsRules bool
	// Single means one `default` for the whole proxy, and no lists.
	Single bool
	// Route means that `to` items have `rules` (matches and backends) instead of a `default`.
	Route bool
	// ByRoute means that the routes of an inbound select its `rules`, by what they match of a request.
	ByRoute bool
}

// Descriptor is one row of the registry. It must not be changed.
type Descriptor struct {
	Type Type
	// Path is the plural in URLs. AltPath is another spelling, or empty.
	Path, AltPath string
	// Short is the type's part of a KRI. It is empty if resources of the type have no KRI.
	Short string
	Scope Scope
	// GlobalToZone, ZoneToGlobal and AcrossZones are the directions in which resources of the type may travel.
	// AcrossZones is from the global to a zone, for resources that another zone wrote.
	GlobalToZone, ZoneToGlobal, AcrossZones bool
	WrittenOn                               Side
	Codec                                   Codec
	HasStatus                               bool
	// KeepName means that the name is not hashed on its way to a zone.
	KeepName bool
	// Policy is nil for types that are not policies.
	Policy *PolicyShape
	// Sensitive describes the secrets in specs of the type. It is nil for types whose specs cannot hold a secret.
	Sensitive *Sensitive

	newSpec func() any
}

// table is the registry, in order of dependency: a type comes after the types that it refers to, and types are sent in
// this order. Policies are in the order in which they are evaluated and shown. Source: the resource types of Kuma's
// KDS; seed 003. Unlike in Kuma, a MeshTrust crosses zones (docs/concepts.md, "Identities").
var table = []Descriptor{
	{Type: TypeMesh, Path: "meshes", Short: "m", Scope: ScopeGlobal, GlobalToZone: true, WrittenOn: OnGlobal,
		Codec: Protobuf, KeepName: true, Sensitive: anywhere(), newSpec: specOf[meshpb.Mesh]},
	{Type: TypeZone, Path: "zones", Short: "z", Scope: ScopeGlobal, WrittenOn: OnGlobal, Codec: Protobuf,
		newSpec: specOf[systempb.Zone]},
	{Type: TypeZoneInsight, Path: "zone-insights", Scope: ScopeGlobal, Codec: Protobuf,
		newSpec: specOf[systempb.ZoneInsight]},
	{Type: TypeAccessRole, Path: "accessroles", AltPath: "access-roles", Scope: ScopeGlobal, WrittenOn: Anywhere,
		newSpec: specOf[AccessRole]},
	{Type: TypeAccessRoleBinding, Path: "accessrolebindings", AltPath: "access-role-bindings", Scope: ScopeGlobal,
		WrittenOn: Anywhere, newSpec: specOf[AccessRoleBinding]},
	{Type: TypeMeshTrust, Path: "meshtrusts", Short: "mtrust", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true,
		AcrossZones: true, WrittenOn: Anywhere, HasStatus: true, newSpec: specOf[MeshTrust]},
	{Type: TypeMeshIdentity, Path: "meshidentities", Short: "mid", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, WrittenOn: Anywhere, HasStatus: true, Sensitive: anywhere("provider.bundled.ca.privateKey"),
		newSpec: specOf[MeshIdentity]},
	{Type: TypeDataplane, Path: "dataplanes", Short: "dp", Scope: ScopeMesh, ZoneToGlobal: true, WrittenOn: OnZone,
		Codec: Protobuf, newSpec: specOf[meshpb.Dataplane]},
	{Type: TypeDataplaneInsight, Path: "dataplane-insights", Scope: ScopeMesh, ZoneToGlobal: true, Codec: Protobuf,
		newSpec: specOf[meshpb.DataplaneInsight]},
	{Type: TypeZoneIngress, Path: "zoneingresses", AltPath: "zone-ingresses", Short: "zi", Scope: ScopeGlobal,
		ZoneToGlobal: true, AcrossZones: true, WrittenOn: OnZone, Codec: Protobuf, newSpec: specOf[meshpb.ZoneIngress]},
	{Type: TypeMeshService, Path: "meshservices", Short: "msvc", Scope: ScopeMesh, ZoneToGlobal: true,
		AcrossZones: true, WrittenOn: OnZone, HasStatus: true, newSpec: specOf[MeshService]},
	{Type: TypeMeshExternalService, Path: "meshexternalservices", Short: "extsvc", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, WrittenOn: Anywhere, HasStatus: true, Sensitive: anywhere("tls.verification.clientKey"),
		newSpec: specOf[MeshExternalService]},
	{Type: TypeMeshMultiZoneService, Path: "meshmultizoneservices", Short: "mzsvc", Scope: ScopeMesh,
		GlobalToZone: true, WrittenOn: OnGlobal, HasStatus: true, newSpec: specOf[MeshMultiZoneService]},
	{Type: TypeHostnameGenerator, Path: "hostnamegenerators", AltPath: "hostname-generators", Short: "hg",
		Scope: ScopeGlobal, GlobalToZone: true, ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[HostnameGenerator]},
	{Type: TypeMeshGateway, Path: "meshgateways", Short: "mgw", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, WrittenOn: Anywhere, Codec: Protobuf,
		Sensitive: anywhere("conf.listeners[].tls.certificates[]"), newSpec: specOf[meshpb.MeshGateway]},
	{Type: TypeMeshReferenceGrant, Path: "meshreferencegrants", Short: "mrg", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, AcrossZones: true, WrittenOn: Anywhere, newSpec: specOf[MeshReferenceGrant]},
	{Type: TypeHTTPRouteGroup, Path: "httproutegroups", Short: "hrg", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[HTTPRouteGroup]},
	{Type: TypeTCPRoute, Path: "tcproutes", Short: "tcpr", Scope: ScopeMesh, GlobalToZone: true, ZoneToGlobal: true,
		WrittenOn: Anywhere, newSpec: specOf[TCPRoute]},
	{Type: TypeTrafficTarget, Path: "traffictargets", Short: "tt", Scope: ScopeMesh, GlobalToZone: true,
		ZoneToGlobal: true, WrittenOn: Anywhere, newSpec: specOf[TrafficTarget]},

	policy(TypeMeshHTTPRoute, "meshhttproutes", "mhttpr", PolicyShape{To: true, Route: true}),
	policy(TypeMeshTCPRoute, "meshtcproutes", "mtcpr", PolicyShape{To: true, Route: true}),
	policy(TypeMeshTLS, "meshtlses", "mtls", PolicyShape{From: true, Rules: true, FromAsRules: true}),
	policy(TypeMeshLoadBalancingStrategy, "meshloadbalancingstrategies", "mlbs", PolicyShape{To: true}),
	policy(TypeMeshPassthrough, "meshpassthroughs", "mp", PolicyShape{Single: true}),
	withStatus(policy(TypeMeshAccessLog, "meshaccesslogs", "mal",
		PolicyShape{To: true, From: true, Rules: true, FromAsRules: true})),
	withStatus(policy(TypeMeshTrace, "meshtraces", "mtr", PolicyShape{Single: true})),
	policy(TypeMeshFaultInjection, "meshfaultinjections", "mfi",
		PolicyShape{To: true, From: true, Rules: true, FromAsRules: true, ByRoute: true}),
	policy(TypeMeshRateLimit, "meshratelimits", "mrl",
		PolicyShape{To: true, From: true, Rules: true, FromAsRules: true, ByRoute: true}),
	withoutSecrets(policy(TypeMeshTimeout, "meshtimeouts", "mt",
		PolicyShape{To: true, From: true, Rules: true, FromAsRules: true, ByRoute: true})),
	withoutSecrets(policy(TypeMeshTrafficPermission, "meshtrafficpermissions", "mtp",
		PolicyShape{From: true, Rules: true})),
	policy(TypeMeshHealthCheck, "meshhealthchecks", "mhc", PolicyShape{To: true}),
	policy(TypeMeshCircuitBreaker, "meshcircuitbreakers", "mcb",
		PolicyShape{To: true, From: true, Rules: true, FromAsRules: true}),
	policy(TypeMeshRetry, "meshretries", "mr", PolicyShape{To: true}),
	withStatus(policy(TypeMeshMetric, "meshmetrics", "mm", PolicyShape{Single: true})),
	policy(TypeMeshProxyPatch, "meshproxypatches", "mpp", PolicyShape{Single: true}),
}

// private are the types that only stores know. Neither users nor peers can name them.
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

// withoutSecrets marks a policy whose fields are all known and hold no secrets.
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

// Descriptors returns all types, in order of dependency. The caller must not change the elements.
func Descriptors() []*Descriptor {
	out := make([]*Descriptor, len(table))
	for i := range table {
		out[i] = &table[i]
	}
	return out
}

// Stored returns the descriptors of all types that a store may hold: those of Descriptors and the private ones.
func Stored() []*Descriptor {
	out := Descriptors()
	for i := range private {
		out = append(out, &private[i])
	}
	return out
}

// LookupStored is Lookup among all types that a store may hold. Only stores use it. For a type that a user or a peer
// names, use Lookup.
func LookupStored(t Type) (*Descriptor, bool) {
	for i := range private {
		if private[i].Type == t {
			return &private[i], true
		}
	}
	return Lookup(t)
}

// Descriptor returns the registry's row for the resource. It panics for an unknown type. Decoders refuse unknown types,
// so no Resource has one.
func (r *Resource) Descriptor() *Descriptor {
	d, ok := LookupStored(r.Type)
	if !ok {
		panic(fmt.Sprintf("resource of unregistered type %q", r.Type))
	}
	return d
}

// Lookup returns the descriptor of a type and whether the registry knows it.
func Lookup(t Type) (*Descriptor, bool) {
	d, ok := byType[string(t)]
	return d, ok
}

// LookupPath returns the type with a plural path in URLs.
func LookupPath(path string) (*Descriptor, bool) {
	d, ok := byPath[path]
	return d, ok
}

// LookupShort returns the type with a short name in KRIs.
func LookupShort(short string) (*Descriptor, bool) {
	d, ok := byShort[short]
	return d, ok
}

// StaysOnGlobal reports whether a zone that has a global never holds resources of the type, and so does not know
// whether any exist.
func (d *Descriptor) StaysOnGlobal() bool {
	return d.WrittenOn&OnZone == 0 && !d.GlobalToZone && !d.ZoneToGlobal && !d.AcrossZones
}

// HasOwner reports whether it matters in which namespace of its zone a resource of the type is: whether the zone's
// operator or the owner of that namespace wrote it. It matters for everything in a mesh except proxies.
func (d *Descriptor) HasOwner() bool {
	return d.Scope == ScopeMesh && d.Type != TypeDataplane && d.Type != TypeDataplaneInsight
}
