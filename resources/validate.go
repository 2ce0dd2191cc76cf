package resources

import (
	"fmt"
	"maps"
	"regexp"
)

// Validate checks a resource that a user writes at home: its names, its labels and its spec. Labels that home computes
// must be absent or correct. Validate returns an *InvalidError with all problems, whose fields are named as in the
// Universal form. The caller checks whether the mesh exists.
func Validate(r *Resource, home Home) error {
	_, err := validate(r, home)
	return err
}

// Accept validates a resource that a user writes at home, and returns it with its computed labels, as home stores it.
// Its error is that of Validate.
func (h Home) Accept(r *Resource) (*Resource, error) {
	v, err := validate(r, h)
	if err != nil {
		return nil, err
	}
	c := r.Clone()
	maps.Copy(c.Labels, v.computed())
	return c, nil
}

// validate does Validate's work, in this order.
func validate(r *Resource, home Home) (*validation, error) {
	v := &validation{resource: r, home: home}
	v.names()
	v.labels()
	v.spec()
	return v, v.result()
}

// computed returns the labels that home computes.
func (v *validation) computed() map[string]string {
	if v.computedLabels == nil {
		v.computedLabels = v.home.ComputedLabels(v.resource)
	}
	return v.computedLabels
}

// ValidateSpec is ValidatePeer with the default system namespace.
func ValidateSpec(r *Resource) error { return ValidatePeer(r, DefaultSystemNamespace) }

// PeerValidation returns ValidatePeer for a receiver in a zone with the given system namespace.
func PeerValidation(systemNamespace string) func(*Resource) error {
	return func(r *Resource) error { return ValidatePeer(r, systemNamespace) }
}

// ValidatePeer checks a resource that a peer sends, with its labels pinned and its role computed. It applies the rules
// of Validate in the role of the resource's owner. Only the rules on form are looser for peers (see validation.peer).
// It refuses a permission with unknown fields, because without them the permission might allow more than its author
// meant.
func ValidatePeer(r *Resource, systemNamespace string) error {
	written, err := AsWritten(r)
	if err != nil {
		return err
	}
	v := &validation{resource: written, peer: true,
		home: Home{Zone: r.Zone(), SystemNamespace: systemNamespaceOf(r, systemNamespace)}}
	v.names()
	v.claims()
	v.spec()
	return v.result()
}

// validation collects the problems of one resource.
type validation struct {
	resource *Resource
	// home is where the resource was written. For a user's resource it is this server. For a peer's resource it is the
	// zone that the resource is pinned to, or the global.
	home Home
	// peer means that the resource was written elsewhere. Its form may be that of another implementation or version,
	// and only its author's server reports problems of form. The reach of the resource is checked all the same: no rule
	// on which namespace, zone, service or identity a resource may claim depends on this field.
	peer     bool
	problems []FieldProblem
	// computedLabels are computed's, once it was called.
	computedLabels map[string]string
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

// top returns the path of a field at the top level. specPath returns the path of the spec's fields, which depends on
// the codec.
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
	// peerMesh allows underscores and dots, because existing control planes allow them in the mesh of a resource.
	peerMesh = regexp.MustCompile(`^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$`)
)

const (
	wantLabel     = "lower-case letters, digits and '-', beginning and ending with a letter or digit"
	wantSubdomain = "lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit"
)

// isSubdomain reports whether s is a DNS-1123 subdomain.
func isSubdomain(s string) bool { return len(s) <= MaxNameBytes && dnsSubdomain.MatchString(s) }

func (v *validation) names() {
	r := v.resource
	v.name()
	switch d := r.Descriptor(); {
	case d.Scope == ScopeGlobal && r.Mesh != "":
		v.fail(top("mesh"), "a %s does not belong to a mesh: leave it out", r.Type)
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

// name checks the name. For destinations, meshes and zones, the name must also be valid as a part of a host name.
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
			v.fail(top("name"), "is %d bytes long, want at most %d: it becomes part of a host name", len(name),
				MaxShortNameBytes)
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

// spec checks the body, depending on the type.
func (v *validation) spec() {
	r := v.resource
	if r.Descriptor().Policy != nil {
		v.policy()
		return
	}
	if (isSMI(r.Type) || r.Type == TypeMeshReferenceGrant) && !r.Spec.strict { // an unknown field may narrow the access
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
	case TypeHostnameGenerator:
		checkTyped(v, (*validation).hostnameGenerator)
	case TypeMeshTrust:
		checkTyped(v, (*validation).trust)
	case TypeMeshIdentity:
		checkTyped(v, (*validation).meshIdentity)
	case TypeMeshReferenceGrant:
		checkTyped(v, (*validation).referenceGrant)
	case TypeMeshGateway:
		checkTyped(v, (*validation).meshGateway)
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

// checkTyped runs check on the typed spec, or reports why the spec does not decode.
func checkTyped[T any](v *validation, check func(*validation, *T)) {
	typed, err := SpecAs[T](v.resource)
	if err != nil {
		v.fail(top("spec"), "%v", err)
		return
	}
	check(v, typed)
}

// shorten limits the length of s for an error message.
func shorten(s string) string {
	if len(s) <= 100 {
		return s
	}
	return s[:100] + "..."
}
