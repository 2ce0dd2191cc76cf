package xds

import (
	"bytes"
	"strings"
)

// stencil is a marshalled message with gaps for a name of one length. Proxies share it: only the names of their secrets
// differ in how they handshake. It is immutable.
type stencil struct{ pieces [][]byte }

// gap stands for a name of the same length, which makes all lengths in the message the same. Its first byte is nowhere else
// in it: bytes before a gap, such as the length of the name, may be equal to any of its bytes.
func gap(length int) string { return ("\x01" + strings.Repeat("\x02", length))[:length] }

// newStencil returns the stencil of a message that was marshalled with a gap for a name.
func newStencil(marshalled []byte, gap string) *stencil {
	return &stencil{bytes.Split(marshalled, []byte(gap))}
}

// size is that of the message with a name in the gaps. A nil stencil has no bytes.
func (s *stencil) size(name string) (n int) {
	if s != nil {
		n = (len(s.pieces) - 1) * len(name)
		for _, piece := range s.pieces {
			n += len(piece)
		}
	}
	return n
}

// appendTo appends the message with a name in the gaps.
func (s *stencil) appendTo(to []byte, name string) []byte {
	if s == nil {
		return to
	}
	for i, piece := range s.pieces {
		if i > 0 {
			to = append(to, name...)
		}
		to = append(to, piece...)
	}
	return to
}
