package kds

import (
	"crypto/rand"
	"encoding/binary"
)

const (
	// nonceBytes is the number of random bytes, and nonceLength that of the letters that encode them, five bits each.
	nonceBytes, nonceLength = 8, 13
	// nonceLetters are those of base 32.
	nonceLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// nonces makes unguessable nonces. It reads the random bytes of several from the system at once: to read them for each
// message to each zone costs as much as to encode the message.
type nonces struct {
	random [16 * nonceBytes]byte
	left   int
}

// next returns a nonce that no other message has, in printable letters.
func (n *nonces) next() string {
	if n.left == 0 {
		_, _ = rand.Read(n.random[:]) // it does not fail: crypto/rand ends the process first
		n.left = len(n.random)
	}
	n.left -= nonceBytes
	bits := binary.LittleEndian.Uint64(n.random[n.left:])
	var text [nonceLength]byte
	for i := range text {
		text[i] = nonceLetters[bits%uint64(len(nonceLetters))]
		bits /= uint64(len(nonceLetters))
	}
	return string(text[:])
}
