package kds

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
)

// variant is the part of an audience that changes the encoding: peers with the same variant share bytes.
type variant struct {
	direction exchange.Direction
	features  exchange.Features
	// zone is set only from zone to global, where it goes into a label.
	zone string
}

// mapper rewrites resources before they are sent: a Mapping.
type mapper interface {
	Outbound(r *resources.Resource, a *exchange.Audience) (*resources.Resource, error)
	WireNameOf(r *resources.Resource, a *exchange.Audience) string
}

func variantOf(a *exchange.Audience) variant {
	v := variant{
		direction: a.Direction,
		features:  a.Features & exchange.ChangeBytes,
	}
	if a.Direction == exchange.ZoneToGlobal {
		v.zone = a.Zone
	}
	return v
}

// encoded is a resource as on the wire, encoded once for each variant and shared by all streams.
type encoded struct {
	once sync.Once
	// key and kri are those of the resource in this store.
	key resources.Key
	kri resources.KRI
	// name and version are those on the wire.
	name, version string
	// raw is the resource as it stands inside a response; size is its length. A joined list replaces the bytes of each
	// resource by its own, which are equal, so that they are held once.
	raw  atomic.Pointer[mem.SliceBuffer]
	size int
	// secret is set if the bytes have a secret in the clear.
	secret bool
	err    error
}

func (c *encoded) bytes() []byte { return *c.raw.Load() }

type encodedKey struct {
	resource weak.Pointer[resources.Resource]
	variant  variant
}

// Encoder encodes each resource once for each variant. An entry lives as long as its resource: a store releases a
// resource once it has changed and has left the changelog's window. Safe for concurrent use.
type Encoder struct {
	mapping mapper
	// panics is set before the first encode.
	panics *panics.Guard
	// open returns a resource with its secrets in the clear, as the peer needs them; nil if nothing is sealed.
	open OpenFunc

	payloads    *payloads
	chunks      *chunks
	inventories *inventories

	// entries is keyed by encodedKey, with *encoded as values.
	entries      sync.Map
	hits, misses atomic.Uint64
	// frames counts the frames that were made.
	frames atomic.Uint64
}

// OpenFunc returns a resource with its secrets in the clear, or the resource itself if it has none sealed.
type OpenFunc func(*resources.Resource) (*resources.Resource, error)

// newEncoder returns an empty encoder. Without open, sealed secrets travel sealed, and the peer cannot use them.
func newEncoder(m *exchange.Mapping, open OpenFunc) *Encoder {
	return &Encoder{mapping: m, open: open, payloads: newPayloads(), chunks: newChunks(),
		inventories: newInventories()}
}

// Stats returns how often an encoded resource was found, and how often one had to be encoded.
func (e *Encoder) Stats() (hits, misses uint64) { return e.hits.Load(), e.misses.Load() }

// encode returns r as encoded for the audience; its error concerns r alone. The result is immutable.
func (e *Encoder) encode(r *resources.Resource, a *exchange.Audience) *encoded {
	key := encodedKey{resource: weak.Make(r), variant: variantOf(a)}
	found, ok := e.entries.Load(key)
	if !ok {
		var kept bool
		if found, kept = e.entries.LoadOrStore(key, &encoded{}); !kept {
			runtime.AddCleanup(r, func(k encodedKey) { e.entries.Delete(k) }, key)
		}
	}
	entry := found.(*encoded)
	fresh := false
	entry.once.Do(func() {
		fresh = true
		// A panic over one peer's resource withholds that resource only; the others still get theirs.
		if err := e.panics.Do(serving, func() error { entry.fill(e, r, a); return nil }); err != nil {
			entry.err = err
		}
	})
	if fresh {
		e.misses.Add(1)
	} else {
		e.hits.Add(1)
	}
	return entry
}

func (c *encoded) fill(e *Encoder, r *resources.Resource, a *exchange.Audience) {
	c.key, c.kri, c.secret = r.Key, resources.KRIOf(r), hasSecrets(r)
	wire, err := e.wire(r, a)
	if err != nil {
		c.err = err
		return
	}
	raw, err := proto.Marshal(wire)
	if err != nil {
		c.err = err
		return
	}
	bytes := mem.SliceBuffer(item(raw))
	c.name, c.version, c.size = wire.GetName(), wire.GetVersion(), len(bytes)
	c.raw.Store(&bytes)
}
