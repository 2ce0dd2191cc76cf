package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// decodeChunk is the number of entries that one goroutine decodes at a time.
const decodeChunk = 256

// decoder decodes entries on all processors, because decoding is most of a start. It passes the resources on in order,
// in the goroutine that adds the entries. At most one chunk for each processor is in progress.
type decoder struct {
	path    string
	put     func(*resources.Resource) error
	filling *chunk
	pending []*chunk
	running sync.WaitGroup
}

type chunk struct {
	keys, values [][]byte
	decoded      []*resources.Resource
	err          error
	done         chan struct{}
}

func newChunk() *chunk { return &chunk{done: make(chan struct{})} }

func newDecoder(path string, put func(*resources.Resource) error) *decoder {
	return &decoder{path: path, put: put, filling: newChunk()}
}

// add copies an entry into the current chunk: the decoding goroutines must not read the file's pages, which may fault.
func (d *decoder) add(key, value []byte) error {
	d.filling.keys = append(d.filling.keys, bytes.Clone(key))
	d.filling.values = append(d.filling.values, bytes.Clone(value))
	if len(d.filling.keys) < decodeChunk {
		return nil
	}
	return d.next()
}

// next starts the full chunk, and takes the result of the oldest one if enough are in progress.
func (d *decoder) next() error {
	c := d.filling
	d.filling = newChunk()
	d.pending = append(d.pending, c)
	d.running.Go(c.decode)
	if len(d.pending) <= runtime.GOMAXPROCS(0) {
		return nil
	}
	return d.take()
}

func (c *chunk) decode() {
	defer close(c.done)
	for i := range c.keys {
		r, err := store.DecodeEntry(c.keys[i], c.values[i])
		if err != nil {
			c.err = err
			return
		}
		c.decoded = append(c.decoded, r)
	}
}

func (d *decoder) take() error {
	c := d.pending[0]
	d.pending = d.pending[1:]
	<-c.done
	for _, r := range c.decoded {
		if err := d.put(r); err != nil {
			return err
		}
	}
	if errors.Is(c.err, resources.ErrUnknownType) { // its checksum is right
		return fmt.Errorf("%s: resource %w: %w: a newer program wrote it: use that one, or restore a backup of this one", d.path, c.err,
			ErrFormat)
	}
	if c.err != nil {
		return damaged(d.path, "resource %w", c.err)
	}
	return nil
}

// finish passes on the remaining resources.
func (d *decoder) finish() error {
	if err := d.next(); err != nil {
		return err
	}
	for len(d.pending) > 0 {
		if err := d.take(); err != nil {
			return err
		}
	}
	return nil
}

// stop waits for goroutines that still run after an error.
func (d *decoder) stop() { d.running.Wait() }
