package bolt

import (
	"encoding/binary"
)

// totals cover all entries of the file. Sum is the sum of the entries' checksums, modulo 2^64, so that it can be
// updated by adding and subtracting.
type totals struct {
	Revision uint64 `json:"revision"`
	Count    uint64 `json:"count"`
	Sum      uint64 `json:"sum"`
}

func (t *totals) add(value []byte) {
	t.Count++
	t.Sum += uint64(binary.BigEndian.Uint32(value))
}

func (t *totals) remove(value []byte) {
	t.Count--
	t.Sum -= uint64(binary.BigEndian.Uint32(value))
}
