package kds

import "github.com/causeway-mesh/causeway/resources"

// Limits bound what one zone can make its global hold. A large mesh stays below the defaults; a zero field means the
// default.
type Limits struct {
	// Resources is the largest number of resources of one type of a zone. Those beyond it are refused by name, and
	// nothing is removed.
	Resources int
	// Bytes is the largest total size of all resources of a zone. Those that exceed it are refused by name.
	Bytes int64
	// Changes is how many durable changes of resources a second a zone may send for long. A zone that sends more waits.
	Changes int
}

// Defaults of Limits.
const (
	DefaultZoneResources       = 50_000
	DefaultZoneBytes     int64 = 256 << 20
)

// Limits of types that go to other zones' proxies unasked. Each MeshTrust goes to every proxy of its mesh, in all
// zones, and each ZoneIngress to all that send to a service of the zone, or to a MeshMultiZoneService in front of it.
const (
	maxZoneTrusts    = 500
	maxZoneIngresses = 100
)

// most returns the largest number of resources of a type that a zone may have.
func (l Limits) most(t resources.Type) int {
	switch t {
	case resources.TypeMeshTrust:
		return min(l.Resources, maxZoneTrusts)
	case resources.TypeZoneIngress:
		return min(l.Resources, maxZoneIngresses)
	}
	return l.Resources
}

// Limits of what is held of a peer beside its resources.
const (
	// maxHave bounds the initial_resource_versions of a peer, of all types of a stream together, in bytes of memory. A
	// peer that sends more gets complete lists.
	maxHave = 32 << 20
	// maxHeldStreams bounds the streams that a zone may hold open beside those of its session.
	maxHeldStreams = 16
)

func (l Limits) filled() Limits {
	if l.Resources == 0 {
		l.Resources = DefaultZoneResources
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultZoneBytes
	}
	if l.Changes == 0 {
		l.Changes = DefaultZoneChanges
	}
	return l
}
