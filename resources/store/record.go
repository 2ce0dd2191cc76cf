package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// record is a resource without its key, as durable stores keep it. A value is the checksum of key and JSON (CRC-32C, 4
// bytes, big endian), followed by the JSON.
type record struct {
	Revision uint64            `json:"revision"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Labels   map[string]string `json:"labels,omitempty"`
	Spec     json.RawMessage   `json:"spec"`
	Status   json.RawMessage   `json:"status,omitempty"`
	Version  string            `json:"version,omitempty"`
	Object   resources.Object  `json:"object,omitzero"`
}

// ChecksumSize is the number of bytes before the JSON of a value.
const ChecksumSize = 4

const (
	keyParts     = 4
	keySeparator = string(rune(separator))
)

// EncodeKey returns the key under which a durable store keeps a resource: type, mesh, namespace and name, separated by
// NUL.
func EncodeKey(k resources.Key) []byte {
	return []byte(strings.Join([]string{string(k.Type), k.Mesh, k.Namespace, k.Name}, keySeparator))
}

// DecodeKey is the reverse of EncodeKey.
func DecodeKey(b []byte) (resources.Key, error) {
	parts := strings.Split(string(b), keySeparator)
	if len(parts) != keyParts {
		return resources.Key{}, fmt.Errorf("key %q has %d parts, not %d", b, len(parts), keyParts)
	}
	return resources.Key{Type: resources.Type(parts[0]), Mesh: parts[1], Namespace: parts[2], Name: parts[3]}, nil
}

// roomAround is about how long the JSON around spec and status is.
const roomAround = 1 << 10

// EncodeValue returns the value that a durable store keeps for r. key must be the encoded key of r.
func EncodeValue(key []byte, r *resources.Resource) ([]byte, error) {
	spec := r.Spec.JSON()
	var out bytes.Buffer
	out.Grow(len(spec) + len(r.Status) + roomAround)
	out.Write(make([]byte, ChecksumSize))
	enc := json.NewEncoder(&out)
	// Spec and status must come back byte for byte: they are compared as bytes.
	enc.SetEscapeHTML(false)
	err := enc.Encode(record{
		Revision: r.Revision, Created: r.CreationTime, Modified: r.ModificationTime,
		Labels: r.Labels, Spec: spec, Status: r.Status, Version: r.Version,
		Object: r.Object,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key, err)
	}
	value := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	binary.BigEndian.PutUint32(value, Checksum(key, value[ChecksumSize:]))
	return value, nil
}

// DecodeEntry decodes one entry of a durable store and keeps no reference to its bytes. It returns ErrChecksum or a
// decoding error.
func DecodeEntry(key, value []byte) (*resources.Resource, error) {
	k, err := DecodeKey(key)
	if err != nil {
		return nil, err
	}
	if len(value) < ChecksumSize || binary.BigEndian.Uint32(value) != Checksum(key, value[ChecksumSize:]) {
		return nil, fmt.Errorf("%s: %w", k, ErrChecksum)
	}
	var rec record
	if err := json.Unmarshal(value[ChecksumSize:], &rec); err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	spec, err := resources.NewSpec(k.Type, rec.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	if rec.Labels == nil {
		rec.Labels = map[string]string{}
	}
	return &resources.Resource{
		Key: k, Labels: rec.Labels, Spec: spec, Status: rec.Status,
		Revision: rec.Revision, CreationTime: rec.Created, ModificationTime: rec.Modified, Version: rec.Version,
		Object: rec.Object,
	}, nil
}

// Checksum returns the CRC-32C of a key and the JSON of its value.
func Checksum(key, body []byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, body)
}
