package kds

import (
	"hash/maphash"
	"maps"
	"reflect"
	"runtime"
	"sync"
	"weak"
)

// inventory is what a peer says it has of a type: the versions of resources, by full name. Streams share it, so it is
// immutable.
type inventory struct {
	versions map[string]string
	// size is the approximate size of the names, the versions and the map's entries, in bytes.
	size int
}

func newInventory(versions map[string]string) *inventory {
	const entry = 48
	one := &inventory{versions: versions}
	for name, version := range versions {
		one.size += len(name) + len(version) + entry
	}
	return one
}

// inventories finds the inventory of another peer that has the same. Zones that come back at the same time mostly have:
// what they have is kept once, and compared once with what there is (see chunks). An inventory that no stream needs any
// more is dropped. Safe for concurrent use.
type inventories struct {
	seed  maphash.Seed
	mu    sync.Mutex
	known map[uint64]weak.Pointer[inventory] // guarded by mu, by digest
	// byMap finds an inventory by its own map, in place of a digest; guarded by mu.
	byMap map[uintptr]weak.Pointer[inventory]
}

func newInventories() *inventories {
	return &inventories{seed: maphash.MakeSeed(), known: map[uint64]weak.Pointer[inventory]{}, byMap: map[uintptr]weak.Pointer[inventory]{}}
}

// of returns the inventory whose map this is, as decodeResume puts it into a request; nil if it is another map. While the
// inventory is there, so is its map, and no other is in its place.
func (is *inventories) of(versions map[string]string) *inventory {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.byMap[reflect.ValueOf(versions).Pointer()].Value()
}

// share returns the inventory of these versions, which another peer may have, too.
func (is *inventories) share(versions map[string]string) *inventory {
	if known := is.of(versions); known != nil {
		return known
	}
	var digest uint64
	for name, version := range versions {
		digest += maphash.String(is.seed, name) * (maphash.String(is.seed, version) | 1) // as digestOf
	}
	if known := is.find(digest); known != nil && maps.Equal(known.versions, versions) {
		return known
	}
	one := newInventory(versions)
	is.mu.Lock()
	defer is.mu.Unlock()
	place := reflect.ValueOf(versions).Pointer()
	is.known[digest], is.byMap[place] = weak.Make(one), weak.Make(one)
	runtime.AddCleanup(one, is.forget, forgotten{digest, place})
	return one
}

func (is *inventories) find(digest uint64) *inventory {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.known[digest].Value()
}

// forgotten are the keys of an inventory that is gone. Another one may have them since.
type forgotten struct {
	digest uint64
	place  uintptr
}

func (is *inventories) forget(f forgotten) {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.known[f.digest].Value() == nil {
		delete(is.known, f.digest)
	}
	if is.byMap[f.place].Value() == nil {
		delete(is.byMap, f.place)
	}
}

// digestOf is what an entry adds to the digest of versions, in whatever order they come.
func (is *inventories) digestOf(name, version []byte) uint64 {
	return maphash.Bytes(is.seed, name) * (maphash.Bytes(is.seed, version) | 1)
}
