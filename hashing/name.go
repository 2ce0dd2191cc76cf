// Package hashing computes the name that a resource has outside the server it was written on. It is a pure function of
// strings and imports nothing of Causeway.
package hashing

import (
	"hash/fnv"
	"strings"
)

// MaxNameLength is the longest name, in bytes, that Name returns.
const MaxNameLength = 253

// maxPrefixLength is the longest readable part, in bytes: a dash and 16 characters follow it.
const maxPrefixLength = MaxNameLength - 1 - suffixLength

const suffixLength = 16

// alphabet has no vowels and no look-alikes. A hexadecimal digit is mapped by its code point, so "0" and "f" share a
// letter. This is part of the wire format.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Name returns `<displayName>-<16 characters>`, the name of a resource outside its home. It cuts displayName to 236
// bytes, possibly within a rune. extra holds the zone and then the namespace, each only if the resource has one. The
// hashed parts have no separator, so different owners can share a name: receivers must check. Source: Kuma's KDS, name
// hashing; seed 004, "Namespace-scoped policies and multizone".
func Name(mesh, displayName string, extra ...string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(mesh))
	_, _ = h.Write([]byte(displayName))
	for _, e := range extra {
		_, _ = h.Write([]byte(e))
	}
	return prefixOf(displayName) + "-" + suffix(h.Sum64())
}

// MayBeOf reports whether a name could be what Name returns for a display name. It costs less than Name.
func MayBeOf(name, displayName string) bool {
	rest, ok := strings.CutPrefix(name, prefixOf(displayName))
	return ok && len(rest) == 1+suffixLength && rest[0] == '-'
}

func prefixOf(displayName string) string { return displayName[:min(len(displayName), maxPrefixLength)] }

// suffix encodes sum, big-endian, as 16 letters of alphabet.
func suffix(sum uint64) string {
	const hexDigits = "0123456789abcdef"
	var out [suffixLength]byte
	for i := range out {
		digit := hexDigits[sum>>(60-4*i)&0xf]
		out[i] = alphabet[int(digit)%len(alphabet)]
	}
	return string(out[:])
}
