package archive

import (
	"fmt"
	"io"
)

// counted counts the bytes read from it.
type counted struct {
	from io.Reader
	n    int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// inflated reads decompressed data. It fails if the data expands more than a backup does, because a small file could
// otherwise fill the memory.
type inflated struct {
	from   io.Reader
	packed *counted
	n      int64
}

// Read implements io.Reader.
func (i *inflated) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	i.n += int64(n)
	if most := freeBytes + maxRatio*i.packed.n; i.n > most {
		return 0, fmt.Errorf("%d compressed bytes expand to more than %d: no backup does", i.packed.n, most)
	}
	return n, err
}
