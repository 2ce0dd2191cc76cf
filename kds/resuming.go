package kds

import (
	"iter"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Field numbers of what a peer has: in DeltaDiscoveryRequest, and in an entry of the map.
const (
	requestVersions protowire.Number = 5
	entryName       protowire.Number = 1
	entryVersion    protowire.Number = 2
)

// entryCost is about what an entry takes in memory beside its text, in bytes. A message whose entries take more than
// eight times its size is left to package messages, which refuses it if it is large.
const entryCost, entryFactor = 64, 8

// decodeResume decodes a request that says what the peer has, without a copy of it if another peer has said the same.
// Such a request is almost all of what a zone sends, and when a global is lost, all of its zones send one. It returns
// false for any other request, for what Protobuf would refuse or read otherwise, and for one that says little, or more
// than a peer may; then the request in m is empty. It makes nothing large before it returns false, unless a name occurs
// twice or something is no text.
func decodeResume(raw []byte, m *arrival) bool {
	m.request.Reset()
	if m.inventories == nil || len(raw) <= maxNonce {
		return false
	}
	var rest []byte
	var digest uint64
	entries, text := 0, 0
	for b := raw; len(b) > 0; {
		number, value, next, ok := bytesField(b)
		if !ok {
			return false
		}
		if number == requestVersions {
			e, ok := entryOf(value)
			if !ok {
				return false
			}
			digest += m.inventories.digestOf(e.name, e.version)
			entries++
			text += len(e.name) + len(e.version)
		} else if field := b[:len(b)-len(next)]; len(rest)+len(field) <= maxNonce {
			rest = append(rest, field...)
		} else {
			return false
		}
		b = next
	}
	if entries == 0 || entries > maxNames || entries*entryCost > len(raw)*entryFactor {
		return false
	}
	if proto.Unmarshal(rest, &m.request) != nil {
		m.request.Reset()
		return false
	}
	if known := m.inventories.find(digest); known != nil && known.is(raw, entries) {
		m.request.InitialResourceVersions = known.versions
		return true
	}
	if m.request.InitialResourceVersions = versionsIn(raw, entries, text); m.request.InitialResourceVersions == nil {
		m.request.Reset()
		return false
	}
	return true
}

// is reports whether a request has these versions. Each of them occurs once: the digest would differ.
func (i *inventory) is(request []byte, entries int) bool {
	if len(i.versions) != entries {
		return false
	}
	for e := range entriesOf(request) {
		if known, ok := i.versions[string(e.name)]; !ok || known != string(e.version) {
			return false
		}
	}
	return true
}

// versionsIn returns the versions in a request, which share one copy of their text and keep nothing else of it; nil if
// a name occurs twice, or if something is no text. size is that of the names and versions, in bytes.
func versionsIn(request []byte, entries, size int) map[string]string {
	versions := make(map[string]string, entries)
	var text strings.Builder
	text.Grow(size) // so it does not move
	keep := func(b []byte) string {
		text.Write(b)
		return text.String()[text.Len()-len(b):]
	}
	for e := range entriesOf(request) {
		if !utf8.Valid(e.name) || !utf8.Valid(e.version) {
			return nil
		}
		versions[keep(e.name)] = keep(e.version)
	}
	if len(versions) != entries {
		return nil
	}
	return versions
}

// versionEntry is an entry of the versions in a request.
type versionEntry struct{ name, version []byte }

// entriesOf yields the entries of a request in which all are whole.
func entriesOf(request []byte) iter.Seq[versionEntry] {
	return func(yield func(versionEntry) bool) {
		for b := request; len(b) > 0; {
			number, value, next, _ := bytesField(b)
			b = next
			if number != requestVersions {
				continue
			}
			if e, _ := entryOf(value); !yield(e) {
				return
			}
		}
	}
}

// entryOf reads an entry in the form in which Protobuf encodes it: name and version, in this order.
func entryOf(entry []byte) (e versionEntry, ok bool) {
	number, name, rest, ok := bytesField(entry)
	if !ok || number != entryName {
		return e, false
	}
	e.name = name
	number, e.version, rest, ok = bytesField(rest)
	return e, ok && number == entryVersion && len(rest) == 0
}
