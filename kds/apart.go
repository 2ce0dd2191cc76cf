package kds

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// The hash in the name of a copy joins its parts without separators, and whoever chooses a namespace can make it come out as he likes.
// So a name says nothing of its owner, and coming first gives no right to it: where a name is somebody else's already, the global
// keeps a copy under another one, which parts are told apart in, and which goes to other zones as it is. Between a zone and the
// global the resource is called what the wire's rule says.

// apartMark ends the names that are not by the wire's rule: the hash of that rule has no vowels.
const apartMark = "e"

// apartName is the other name of what zone calls name.
func apartName(mesh, name, zone string) string {
	sum := sha256.Sum256([]byte(mesh + "\x00" + name + "\x00" + zone))
	suffix := "-" + hex.EncodeToString(sum[:16]) + apartMark
	return name[:min(len(name), hashing.MaxNameLength-len(suffix))] + suffix
}

// isApart reports whether a copy on the global has its other name; hashed is the one by the wire's rule.
func isApart(r *resources.Resource, hashed string) bool {
	return r.Zone() != "" && strings.HasSuffix(r.Name, apartMark) && r.Name == apartName(r.Mesh, hashed, r.Zone())
}

// place chooses the name of what a zone sent: the wire's, unless that is somebody else's, or what the global's own resource
// of that name at home is called in zones, whether there is one or not. A copy that has its other name keeps it.
func (v *receiver) place(p *plan, r *resources.Resource) {
	if v.arrival.Direction != ZoneToGlobal {
		return
	}
	apart := r.Key
	apart.Name = apartName(r.Mesh, r.Name, v.arrival.Zone)
	if held := p.snapshot.Get(apart); held != nil && v.isCopy(held) {
		r.Key = apart
		return
	}
	held := p.snapshot.Get(r.Key)
	if held != nil && v.mayReplace(held, r) != nil || held == nil && v.isGlobals(r) {
		r.Key = apart
	}
}

// isGlobals reports whether r's name is that of the copies of one of the global's own resources.
func (v *receiver) isGlobals(r *resources.Resource) bool {
	own := r.DisplayName()
	return r.Name == hashing.Name(r.Mesh, own) || r.Name == hashing.Name(r.Mesh, own, v.arrival.OwnNamespace)
}

// wireOf is what the peer calls a copy.
func (v *receiver) wireOf(r *resources.Resource) string {
	if v.arrival.Direction == ZoneToGlobal && strings.HasSuffix(r.Name, apartMark) {
		if hashed := zoneName(r, v.arrival.Zone); isApart(r, hashed) {
			return WireName(hashed, r.Mesh)
		}
	}
	return WireName(r.Name, r.Mesh)
}
