package kds

import "github.com/causeway-mesh/causeway/resources"

// Limits bound what one zone can have its global keep. A large mesh does not meet the defaults; a field that is zero is the default.
type Limits struct {
	// Resources is how many resources of one type a zone may have here. One more is refused by name, and nothing is removed.
	Resources int
	// Bytes is how large all resources of a zone may be together. What would make them larger is refused by name.
	Bytes int64
}

// Defaults of Limits.
const (
	DefaultZoneResources       = 50_000
	DefaultZoneBytes     int64 = 256 << 20
)

// Bounds of types that other zones' proxies are told of without asking. Each MeshTrust goes to every proxy of its mesh, in all zones, and each
// ZoneIngress to all that send to a service of the zone, or to a MeshMultiZoneService that it is behind.
const (
	maxZoneTrusts    = 500
	maxZoneIngresses = 100
)

// most is how many resources of a type a zone may have.
func (l Limits) most(t resources.Type) int {
	switch t {
	case resources.TypeMeshTrust:
		return min(l.Resources, maxZoneTrusts)
	case resources.TypeZoneIngress:
		return min(l.Resources, maxZoneIngresses)
	}
	return l.Resources
}

// Bounds of what is remembered of a peer beside its resources.
const (
	// maxHave bounds what a peer says that it has, of all types of a stream together, in bytes of memory. One that has more is
	// sent complete lists.
	maxHave = 32 << 20
	// maxHeldStreams is how many streams a zone may hold open beside those of its session.
	maxHeldStreams = 16
)

func (l Limits) filled() Limits {
	if l.Resources == 0 {
		l.Resources = DefaultZoneResources
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultZoneBytes
	}
	return l
}
