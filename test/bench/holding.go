package main

import (
	"hash/maphash"
	"maps"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Field numbers of envoy.service.discovery.v3.Resource.
const resourceVersion, resourceName = 1, 3

// holding is what a simulated zone has of the counted type. Zones that have the same share it, and the bytes that say so:
// thousands of zones on one machine would leave the servers little if each kept and encoded its own. Everything but next is
// immutable.
type holding struct {
	versions map[string]string // by name
	said     []byte            // the initial_resource_versions of a request

	seed maphash.Seed
	mu   sync.Mutex
	next map[uint64]*holding // what it becomes, by the hash of the resources in a message; guarded by mu
}

func newHolding() *holding { return &holding{seed: maphash.MakeSeed(), next: map[uint64]*holding{}} }

// with returns what a zone has after a message.
func (h *holding) with(message []byte) (*holding, error) {
	var hash maphash.Hash
	hash.SetSeed(h.seed)
	eachField(message, func(n protowire.Number, v []byte) {
		if n == responseResources {
			_, _ = hash.Write(v)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.next[hash.Sum64()]
	if next != nil {
		return next, nil
	}
	next = &holding{versions: maps.Clone(h.versions), seed: h.seed, next: map[uint64]*holding{}}
	if next.versions == nil {
		next.versions = map[string]string{}
	}
	eachField(message, func(n protowire.Number, v []byte) {
		if n == responseResources {
			next.versions[string(field(v, resourceName))] = string(field(v, resourceVersion))
		}
	})
	if maps.Equal(next.versions, h.versions) { // a message without resources, as for a zone that has everything
		next = h
	} else {
		var err error
		if next.said, err = proto.Marshal(&discovery.DeltaDiscoveryRequest{InitialResourceVersions: next.versions}); err != nil {
			return h, err
		}
	}
	h.next[hash.Sum64()] = next
	return next, nil
}
