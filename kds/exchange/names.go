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
