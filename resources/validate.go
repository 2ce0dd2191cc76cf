package resources

import (
	"fmt"
	"regexp"
)

// Validate checks a resource that a user writes at home: its names, its labels and its spec. Labels that home computes
// may be absent or right. It returns an *InvalidError with all problems found, fields named as in the Universal form.
// Whether the mesh exists is the writer's to check.
func Validate(r *Resource, home Home) error {
	v := &validation{resource: r, home: home}
	v.names()
	v.labels()
	v.spec()
	return v.result()
}

// ValidateSpec is ValidatePeer where the system namespace is not configured.
func ValidateSpec(r *Resource) error { return ValidatePeer(r, DefaultSystemNamespace) }

// PeerValidation is ValidatePeer for a receiver in a zone whose system namespace is the given one.
func PeerValidation(systemNamespace string) func(*Resource) error {
	return func(r *Resource) error { return ValidatePeer(r, systemNamespace) }
}

// ValidatePeer checks a resource that a peer sends, with its labels pinned and its role computed: all of Validate, in the role that
// its owner has, but for how things are written, where peers may say more than users (see validation.peer). A permission with
// fields that are unknown here is refused, because it might be read as more permissive than it is (design, section 4).
func ValidatePeer(r *Resource, systemNamespace string) error {
	written, err := AsWritten(r)
	if err != nil {
		return err
	}
	v := &validation{resource: written, peer: true, home: Home{Zone: r.Zone(), SystemNamespace: systemNamespaceOf(r, systemNamespace)}}
	v.names()
	v.claims()
	v.spec()
	return v.result()
}

// validation collects the problems of one resource.
type validation struct {
	resource *Resource
	// home is where the resource was written: this server for a user's, the zone that it is pinned to, or the global, for a peer's.
	home Home
	// peer: the resource was written elsewhere. Its form may be that of another implementation or another version, and what is wrong
	// with the form alone was its writer's to hear. How far it reaches is judged all the same: no rule on whose namespace, zone, service or
	// identity a resource may speak of asks this.
	peer     bool
	problems []FieldProblem
}

func (v *validation) fail(at *fieldPath, format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, FieldProblem{Field: at.String(), Reason: fmt.Sprintf(format, args...)})
	}
}

func (v *validation) result() error {
	if len(v.problems) == 0 {
		return nil
	}
	return &InvalidError{Key: v.resource.Key, Problems: v.problems}
}

// top is the path of a field at the top level; specPath that of the spec's fields, wherever the codec puts them.
func top(name string) *fieldPath { return (*fieldPath)(nil).field(name) }

func (v *validation) specPath() *fieldPath {
	if v.resource.Descriptor().Codec == Protobuf {
		return nil
	}
	return top("spec")
}

var (
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	// peerMesh: existing control planes let the mesh of a resource contain underscores and dots.
	peerMesh = regexp.MustCompile(`^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$`)
)

const (
	wantLabel     = "lower-case letters, digits and '-', beginning and ending with a letter or digit"
	wantSubdomain = "lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit"
)

// isSubdomain is DNS-1123's.
func isSubdomain(s string) bool { return len(s) <= MaxNameBytes && dnsSubdomain.MatchString(s) }

func (v *validation) names() {
	r := v.resource
	v.name()
	switch d := r.Descriptor(); {
	case d.Scope == ScopeGlobal && r.Mesh != "":
		v.fail(top("mesh"), "a %s belongs to no mesh: leave it out", r.Type)
	case d.Scope == ScopeMesh && r.Mesh == "":
		v.fail(top("mesh"), "is required")
	case d.Scope == ScopeMesh && v.peer:
		if len(r.Mesh) > MaxShortNameBytes || !peerMesh.MatchString(r.Mesh) {
			v.fail(top("mesh"), "%q is not the name of a mesh", shorten(r.Mesh))
		}
	case d.Scope == ScopeMesh:
		v.label(top("mesh"), r.Mesh)
	}
	v.namespaceHolds()
	if r.Namespace == "" {
		return
	}
	if r.Descriptor().Scope == ScopeGlobal && !v.peer {
		v.fail(top("namespace"), "a %s has no namespace: leave it out", r.Type)
		return
	}
	v.label(top("namespace"), r.Namespace)
}

// name checks the name, and for destinations, meshes and zones that it can be part of a host name.
func (v *validation) name() {
	r := v.resource
	switch r.Type {
	case TypeMesh, TypeZone:
		if v.peer && r.Type == TypeMesh {
			if len(r.Name) > MaxShortNameBytes || !peerMesh.MatchString(r.Name) {
				v.fail(top("name"), "%q is not the name of a mesh", shorten(r.Name))
			}
			return
		}
		v.label(top("name"), r.Name)
		return
	case TypeMeshService, TypeMeshExternalService, TypeMeshMultiZoneService:
		if name := r.DisplayName(); len(name) > MaxShortNameBytes {
			v.fail(top("name"), "is %d bytes long, want at most %d: it becomes part of a host name", len(name), MaxShortNameBytes)
			return
		}
	}
	switch {
	case r.Name == "":
		v.fail(top("name"), "is required")
	case len(r.Name) > MaxNameBytes:
		v.fail(top("name"), "is %d bytes long, want at most %d", len(r.Name), MaxNameBytes)
	case !dnsSubdomain.MatchString(r.Name):
		v.fail(top("name"), "%q is not a name: want %s", r.Name, wantSubdomain)
	}
}

func (v *validation) label(at *fieldPath, s string) {
	switch {
	case s == "":
		v.fail(at, "is required")
	case len(s) > MaxShortNameBytes:
		v.fail(at, "is %d bytes long, want at most %d", len(s), MaxShortNameBytes)
	case !dnsLabel.MatchString(s):
		v.fail(at, "%q is not a name: want %s", s, wantLabel)
	}
}

// spec checks the body by type.
func (v *validation) spec() {
	r := v.resource
	if r.Descriptor().Policy != nil {
		v.policy()
		return
	}
	if (isSMI(r.Type) || r.Type == TypeMeshReferenceGrant) && !r.Spec.strict { // what is unknown may narrow the access
		if v.strictly(); len(v.problems) > 0 {
			return
		}
	}
	switch r.Type {
	case TypeAccessRole:
		checkTyped(v, (*validation).accessRole)
	case TypeAccessRoleBinding:
		checkTyped(v, (*validation).accessRoleBinding)
	case TypeDataplane:
		checkTyped(v, (*validation).dataplane)
	case TypeZoneIngress:
		checkTyped(v, (*validation).zoneIngress)
	case TypeMesh:
		checkTyped(v, (*validation).mesh)
	case TypeMeshService:
		checkTyped(v, (*validation).meshService)
	case TypeMeshMultiZoneService:
		checkTyped(v, (*validation).multiZoneService)
	case TypeMeshExternalService:
		checkTyped(v, (*validation).externalService)
	case TypeMeshTrust:
		checkTyped(v, (*validation).trust)
	case TypeMeshIdentity:
		checkTyped(v, (*validation).meshIdentity)
	case TypeMeshReferenceGrant:
		checkTyped(v, (*validation).referenceGrant)
	case TypeTrafficTarget:
		checkTyped(v, (*validation).trafficTarget)
	case TypeHTTPRouteGroup:
		checkTyped(v, (*validation).httpRouteGroup)
	case TypeTCPRoute:
		checkTyped(v, (*validation).tcpRoute)
	default:
		if _, err := r.Spec.decode(); err != nil {
			v.fail(top("spec"), "%v", err)
		}
	}
}

// checkTyped runs check on the typed spec, or reports why there is none.
func checkTyped[T any](v *validation, check func(*validation, *T)) {
	typed, err := SpecAs[T](v.resource)
	if err != nil {
		v.fail(top("spec"), "%v", err)
		return
	}
	check(v, typed)
}

// shorten keeps what goes into an error text readable.
func shorten(s string) string {
	if len(s) <= 100 {
		return s
	}
	return s[:100] + "..."
}
