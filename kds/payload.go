package kds

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/mem"

	"github.com/causeway-mesh/causeway/resources"
)

// payload holds the resources of one message. All streams that send the same content share it: zones that connect at
// once get the same lists, and none needs a copy of its own.
type payload struct {
	resources []*encoded
	// buffer holds all of them, encoded as fields of a response; nil for a payload that is too small to join.
	buffer mem.Buffer
	// frame is the compressed form, which framed makes once.
	frame   *mem.SliceBuffer
	framing sync.Once
	// incompressible means that no more resources than these fit into a message, even compressed.
	incompressible atomic.Bool
}

// joinedFrom is the number of resources from which a payload is joined and shared.
const joinedFrom = 16

type payloadKey struct {
	typ     resources.Type
	variant variant
	// wide means that it fits into a message only if it is compressed.
	wide bool
	// first is the first resource: the position in the list.
	first *encoded
}

// payloads finds the latest payload of each kind and position while a stream still holds it, because streams are at
// different messages of one list. It is safe for concurrent use.
type payloads struct {
	// scratch lends slices to build payloads in.
	scratch sync.Pool

	mu     sync.Mutex
	latest map[payloadKey]weak.Pointer[payload] // guarded by mu
}

func newPayloads() *payloads {
	return &payloads{latest: map[payloadKey]weak.Pointer[payload]{},
		scratch: sync.Pool{New: func() any { return new([]*encoded) }}}
}

// borrow returns an empty slice to build a payload in; share takes it back.
func (b *payloads) borrow() *[]*encoded { return b.scratch.Get().(*[]*encoded) }

// giveBack returns a borrowed slice.
func (b *payloads) giveBack(list *[]*encoded) {
	clear(*list)
	*list = (*list)[:0]
	b.scratch.Put(list)
}

// isIncompressible reports whether the latest payload of a kind has the resources in list, and compression is known to
// leave no room for more.
func (b *payloads) isIncompressible(key payloadKey, list []*encoded) bool {
	if len(list) == 0 {
		return false
	}
	key.first = list[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.latest[key].Value()
	return last != nil && last.incompressible.Load() && slices.Equal(last.resources, list)
}

// share returns the payload of the resources in list; the caller must not use list afterwards. Set keep for a list that
// is the same for all peers: then only the payload holds each resource's bytes.
func (b *payloads) share(key payloadKey, list *[]*encoded, keep bool) *payload {
	built := *list
	defer b.giveBack(list)
	if len(built) < joinedFrom {
		return &payload{resources: slices.Clone(built)}
	}
	key.first = built[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.latest[key].Value(); last != nil && slices.Equal(last.resources, built) {
		return last
	}
	fresh := &payload{resources: slices.Clone(built), buffer: join(built, keep)}
	b.latest[key] = weak.Make(fresh)
	runtime.AddCleanup(fresh, b.forget, key)
	return fresh
}

// forget drops the entry of a payload that no stream holds any more.
func (b *payloads) forget(key payloadKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, there := b.latest[key]; there && last.Value() == nil { // otherwise there is a new one
		delete(b.latest, key)
	}
}

// join copies the resources into one buffer. With keep, the resources then refer to that buffer.
func join(list []*encoded, keep bool) mem.Buffer {
	size := 0
	for _, e := range list {
		size += e.size
	}
	all := make([]byte, 0, size)
	places := make([]mem.SliceBuffer, len(list))
	for i, e := range list {
		start := len(all)
		all = append(all, e.bytes()...)
		places[i] = all[start:len(all):len(all)]
	}
	if keep {
		for i, e := range list {
			e.raw.Store(&places[i])
		}
	}
	return mem.SliceBuffer(all)
}
