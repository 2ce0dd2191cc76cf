package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// WireName is how a discovery response names a resource: `<name>.<mesh>`, with the dot also where there is no mesh.
func WireName(name, mesh string) string { return name + "." + mesh }

// The hash in the name of a copy joins its parts without separators, and whoever chooses a namespace can make it come out as he likes.
// So a name says nothing of its owner, and coming first gives no right to it: where a name is somebody else's already, the global
// keeps a copy under another one, which parts are told apart in, and which goes to other zones as it is. Between a zone and the
// global the resource is called what the wire's rule says.

// apartMark ends the names that are not by the wire's rule: the hash of that rule has no vowels.
const apartMark = "e"

// apartName is the other name of what zone calls name.
func ApartName(mesh, name, zone string) string {
	sum := sha256.Sum256([]byte(mesh + "\x00" + name + "\x00" + zone))
	suffix := "-" + hex.EncodeToString(sum[:16]) + apartMark
	return name[:min(len(name), hashing.MaxNameLength-len(suffix))] + suffix
}

// mayBeApart reports whether a name may be one of those that apartName makes: no other of ours ends like them.
func MayBeApart(name string) bool { return strings.HasSuffix(name, apartMark) }

// isApart reports whether a copy on the global has its other name; hashed is the one by the wire's rule.
func IsApart(r *resources.Resource, hashed string) bool {
	return r.Zone() != "" && MayBeApart(r.Name) && r.Name == ApartName(r.Mesh, hashed, r.Zone())
}
