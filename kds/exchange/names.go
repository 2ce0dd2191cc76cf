package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// WireName returns a resource's name in a discovery response: `<name>.<mesh>`, with the dot even without a mesh.
func WireName(name, mesh string) string { return name + "." + mesh }

// The hash in the name of a copy joins its parts without separators, so whoever chooses a namespace can force a
// collision. Hence a name does not prove its owner, and coming first gives no right to it: if a name belongs to another
// owner already, the global stores a copy under an alternative name, whose hash separates the parts, and which goes to
// other zones unchanged. Between a zone and the global, the resource has the name of the wire's rule.

// apartMark ends alternative names: the hash of the wire's rule has no vowels.
const apartMark = "e"

// ApartName returns the alternative name of the resource that zone sends as name.
func ApartName(mesh, name, zone string) string {
	sum := sha256.Sum256([]byte(mesh + "\x00" + name + "\x00" + zone))
	suffix := "-" + hex.EncodeToString(sum[:16]) + apartMark
	return name[:min(len(name), hashing.MaxNameLength-len(suffix))] + suffix
}

// MayBeApart reports whether a name may be one that ApartName returns: no other name of ours ends like them.
func MayBeApart(name string) bool { return strings.HasSuffix(name, apartMark) }

// IsApart reports whether a copy on the global has its alternative name; hashed is the name by the wire's rule.
func IsApart(r *resources.Resource, hashed string) bool {
	return r.Zone() != "" && MayBeApart(r.Name) && r.Name == ApartName(r.Mesh, hashed, r.Zone())
}

func hashName(r *resources.Resource, a *Audience) error {
	if hashesFor(r, a) {
		r.Name = wireHash(r, a)
	}
	return nil
}

// wireHash returns r's hashed name, or the alternative name that the global gave to a copy.
func wireHash(r *resources.Resource, a *Audience) string {
	hashed := HashedName(r)
	if a.Direction == GlobalToZone && IsApart(r, hashed) {
		return r.Name
	}
	return hashed
}

// hashesFor reports whether r travels under a hashed name: a zone always hashes names, the global for peers that expect
// it; some types keep their names.
func hashesFor(r *resources.Resource, a *Audience) bool {
	if a.Direction == ZoneToGlobal {
		return true
	}
	return !r.Descriptor().KeepName && a.Features.Has(FeatureHashSuffix)
}

// HashedName returns r's name outside its home, from its labels. A copy's is the name that it already has.
func HashedName(r *resources.Resource) string {
	var extra []string
	if zone, ok := r.Labels[resources.LabelZone]; ok {
		extra = append(extra, zone)
	}
	if ns, ok := r.Labels[resources.LabelNamespace]; ok {
		extra = append(extra, ns)
	}
	return hashing.Name(r.Mesh, r.DisplayName(), extra...)
}

// NameInZone returns the only name under which zone may send r.
func NameInZone(r *resources.Resource, zone string) string {
	return zoneHash(r.Mesh, r.DisplayName(), zone, r.Labels[resources.LabelNamespace])
}

func zoneHash(mesh, name, zone, namespace string) string {
	if namespace == "" {
		return hashing.Name(mesh, name, zone)
	}
	return hashing.Name(mesh, name, zone, namespace)
}

// WireNameOf returns the name under which r travels to the audience.
func (m *Mapping) WireNameOf(r *resources.Resource, a *Audience) string {
	name := r.Name
	if hashesFor(r, a) {
		name = wireHash(withNamespaceLabel(r), a)
	}
	return WireName(name, r.Mesh)
}

// namespaceLabel returns the value of LabelNamespace that r must carry on the wire, if any.
func namespaceLabel(r *resources.Resource) (string, bool) {
	if ns, ok := r.Labels[resources.LabelNamespace]; ok {
		return ns, true
	}
	ns := r.HomeNamespace()
	return ns, ns != ""
}

func withNamespaceLabel(r *resources.Resource) *resources.Resource {
	ns, ok := namespaceLabel(r)
	if _, has := r.Labels[resources.LabelNamespace]; has || !ok {
		return r
	}
	r = r.Clone()
	r.Labels[resources.LabelNamespace] = ns
	return r
}
