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

// variant is what of an audience changes the bytes: peers with the same variant share them.
type variant struct {
	direction exchange.Direction
	features  exchange.Features
	// zone is set on the way up only, where it goes into a label.
	zone string
}

// mapper is what changes resources on the way out: a Mapping.
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

// encoded is a resource on the wire, made once for each variant and shared by all streams.
type encoded struct {
	once sync.Once
	// key and kri are those of the resource here.
	key resources.Key
	kri resources.KRI
	// name and version are those on the wire.
	name, version string
	// raw is the resource as it stands inside a response; size is its length. A list that was joined takes the place of the
	// bytes of each: they are the same, and are held once.
	raw  atomic.Pointer[mem.SliceBuffer]
	size int
	err  error
}

func (c *encoded) bytes() []byte { return *c.raw.Load() }

type encodedKey struct {
	resource weak.Pointer[resources.Resource]
	variant  variant
}

// Encoder marshals each resource once for each variant. What it holds lives as long as the resource does: a store lets
// go of a resource when it is changed and out of the changelog's window. Safe for concurrent use.
type Encoder struct {
	mapping mapper
	// panics is set before anything is encoded.
	panics *panics.Guard
	// open returns a resource with its secrets in the clear, as whoever uses them gets it; nil where nothing is sealed.
	open OpenFunc

	bundles *bundles
	parcels *parcels

	// entries is keyed by encodedKey, with *encoded as values.
	entries      sync.Map
	hits, misses atomic.Uint64
}

// OpenFunc returns a resource with its secrets in the clear, or the resource itself where none is sealed.
type OpenFunc func(*resources.Resource) (*resources.Resource, error)

// newEncoder returns an empty encoder. Without open, what is sealed travels as it is, and is of no use to the peer.
func newEncoder(m *exchange.Mapping, open OpenFunc) *Encoder {
	return &Encoder{mapping: m, open: open, bundles: newBundles(), parcels: newParcels()}
}

// Stats returns how often a resource was found encoded and how often it had to be.
func (e *Encoder) Stats() (hits, misses uint64) { return e.hits.Load(), e.misses.Load() }

// encode returns r for the audience; its error is about r alone. Nobody may change the result.
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
		// What one peer wrote must not keep others from what they are due: it alone is withheld.
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
	c.key, c.kri = r.Key, resources.KRIOf(r)
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
