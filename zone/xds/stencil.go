package xds

import (
	"bytes"
	"strings"
)

// stencil is a marshalled message with gaps for a name of one length. Proxies share it: only the names of their secrets
// differ in how they handshake.
type stencil struct{ pieces [][]byte }

// gap stands for a name of the same length, which makes all lengths in the message the same.
func gap(name string) string { return strings.Repeat("\x01", len(name)) }

// newStencil returns the stencil of a message that was marshalled with gaps for names of a length.
func newStencil(marshalled []byte, length int) *stencil {
	return &stencil{bytes.Split(marshalled, bytes.Repeat([]byte{1}, length))}
}

// with returns the message with a name in the gaps.
func (s *stencil) with(name string) []byte { return bytes.Join(s.pieces, []byte(name)) }
