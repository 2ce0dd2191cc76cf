package kds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/frame"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
)

// frameField is the field of a DeltaDiscoveryResponse, beside Envoy's, that has a frame: the type and the resources of
// the message, compressed once for all zones. A resource in it has no version: that is the SHA-256 of its bytes, which
// compress no further, and the reader takes it from them. Only a global sends frames, to zones with FeatureFrames.
const frameField protowire.Number = 2000

// framedFrom is the size of resources, in bytes, from which a frame can be shorter than what it holds.
const framedFrom = 64

// framed returns the type and the resources of a payload as a field of a response; nil if that is no shorter, or may not
// be done. It makes it once: all streams share it.
func (e *Encoder) framed(t resources.Type, p *payload) *mem.SliceBuffer {
	p.framing.Do(func() {
		size := 0
		for _, one := range p.resources {
			if one.secret {
				return // the length of what is compressed beside a secret tells of it
			}
			size += one.size
		}
		if size < framedFrom {
			return
		}
		content := make([]byte, 0, size+len(t)+itemOverhead)
		content = protowire.AppendString(protowire.AppendTag(content, responseTypeURL, protowire.BytesType), string(t))
		for _, one := range p.resources {
			content = one.appendUnversioned(content)
		}
		e.frames.Add(1)
		if made := frame.Make(content); len(made) < size {
			field := protowire.AppendTag(make([]byte, 0, len(made)+itemOverhead+1), frameField, protowire.BytesType)
			buffer := mem.SliceBuffer(protowire.AppendBytes(field, made))
			p.frame = &buffer
		}
	})
	return p.frame
}

// appendUnversioned appends the resource as it stands in a response, without its version, which Protobuf writes first.
func (c *encoded) appendUnversioned(b []byte) []byte {
	_, resource, _, _ := bytesField(c.bytes())
	if number, _, rest, ok := bytesField(resource); ok && number == resourceVersion {
		resource = rest
	}
	return protowire.AppendBytes(protowire.AppendTag(b, resourcesField, protowire.BytesType), resource)
}

// resourceVersion is the field number of a discovery.Resource's version.
const resourceVersion protowire.Number = 1

// opened wraps receive: what is in a response's frame is in the response. It fails if there is something wrong with the
// frame, and if there is one although this side did not announce that it takes any.
func (s *session) opened(d exchange.Direction, takes bool,
	receive func() (*discovery.DeltaDiscoveryResponse, error)) func() (*discovery.DeltaDiscoveryResponse, error) {
	return func() (*discovery.DeltaDiscoveryResponse, error) {
		m, err := receive()
		if err != nil {
			return nil, err
		}
		if err := openFrame(m, takes); err != nil {
			s.observe(Event{Kind: FrameRefused, Time: s.now(), Direction: d, Err: err})
			return nil, err
		}
		return m, nil
	}
}

// openFrame puts what is in a response's frame, if it has one, in its place.
func openFrame(m *discovery.DeltaDiscoveryResponse, takes bool) error {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	sent, err := frameIn(unknown)
	if err != nil || sent == nil {
		return err
	}
	if !takes {
		return fmt.Errorf("%w: this side takes none", ErrFrame)
	}
	if len(m.GetResources()) > 0 || m.GetTypeUrl() != "" {
		return fmt.Errorf("%w: the message has resources or a type beside it", ErrFrame)
	}
	content, err := frame.Open(sent, MaxMessageSize)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	var inside discovery.DeltaDiscoveryResponse
	if err := messages.Check(&inside, content); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if err := proto.Unmarshal(content, &inside); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	t, list := inside.GetTypeUrl(), inside.GetResources()
	if inside.TypeUrl, inside.Resources = "", nil; proto.Size(&inside) > 0 {
		return fmt.Errorf("%w: it holds more than a type and resources", ErrFrame)
	}
	for _, r := range list {
		if r.GetVersion() == "" {
			r.Version = versionOf(r.GetResource().GetValue())
		}
	}
	m.TypeUrl, m.Resources = t, list
	m.ProtoReflect().SetUnknown(nil)
	return nil
}

// frameIn returns the frame among the fields that are not Envoy's; nil if there is none.
func frameIn(fields []byte) (found []byte, err error) {
	for len(fields) > 0 {
		number, kind, n := protowire.ConsumeTag(fields)
		size := protowire.ConsumeFieldValue(number, kind, fields[max(n, 0):])
		if n < 0 || size < 0 {
			return nil, fmt.Errorf("%w: the field is cut off", ErrFrame)
		}
		value := fields[n : n+size]
		fields = fields[n+size:]
		switch {
		case number != frameField:
			continue
		case kind != protowire.BytesType:
			return nil, fmt.Errorf("%w: field %d is not of bytes", ErrFrame, frameField)
		case found != nil:
			return nil, fmt.Errorf("%w: the message has two", ErrFrame)
		}
		found, _ = protowire.ConsumeBytes(value)
	}
	return found, nil
}

// versionOf returns the version of a resource with these bytes: their SHA-256.
func versionOf(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// framedFactor is how many times as large as a message the resources may be that go into it compressed. Policies
// compress twenty times; a peer decompresses four messages' worth at once.
const framedFactor = 4

// packAlone makes the message. If the peer takes frames, it puts more into it, unless that does not compress.
func (k *packer) packAlone(sub *subscription, t *transfer, v *view) (*chunk, error) {
	limit := k.maxMessage
	if t.list && !k.audience.Features.Has(exchange.FeatureParts) {
		limit = k.maxWhole
	}
	if wide := min(limit*framedFactor, k.maxWhole); wide > limit && k.frames() {
		list := k.encoder.payloads.borrow()
		p, err := k.fill(sub, t, v, list, limit)
		key := k.payloadKey(sub)
		if p == nil || err != nil || p.done || k.encoder.payloads.isIncompressible(key, *list) {
			return k.share(key, t, v, p, list), err
		}
		k.encoder.payloads.giveBack(list)
		key.wide = true
		if p, err := k.packWithin(key, sub, t, v, wide); p == nil || err != nil || p.size <= limit {
			return p, err
		}
		p, err = k.packWithin(k.payloadKey(sub), sub, t, v, limit)
		if p != nil {
			p.incompressible.Store(true)
		}
		return p, err
	}
	return k.packWithin(k.payloadKey(sub), sub, t, v, limit)
}

// frames reports whether the peer takes frames.
func (k *packer) frames() bool {
	return k.direction == exchange.GlobalToZone && k.audience.Features.Has(exchange.FeatureFrames)
}

// compress gives the message the form in which all resources are in one frame, if the peer takes it.
func (k *packer) compress(t resources.Type, p *chunk) {
	if !k.frames() {
		return
	}
	if p.compressed = k.encoder.framed(t, p.payload); p.compressed == nil {
		return
	}
	for _, e := range p.resources {
		p.size -= e.size
	}
	p.size += p.compressed.Len()
}
