package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestPagesThatLeadAstray damages each number of the headers and elements of pages, one after another: where a page says
// it is, what it holds, how many pages follow, where keys and values are, and which page is below. Each file is refused
// as damaged, or as good as before. Without checkPages some of them end the process,
// and some are read for ever.
func TestPagesThatLeadAstray(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 60)
	var below uint64
	edit(t, path, func(tx *bbolt.Tx) error { below = uint64(tx.Bucket(resourcesBucket).Root()); return nil })
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole = whole[:usedBytes(t, path)] // The rest is room to grow.
	size, le := uint64(os.Getpagesize()), binary.LittleEndian
	newest, valid := newestMeta(whole, int(size))
	if valid == 0 || le.Uint16(whole[below*size+8:]) != branchPage {
		t.Fatal("the file is not what this test needs: its resources fit into a page")
	}
	child := le.Uint64(whole[below*size+pageHeader+8:])
	dir, tried, found := t.TempDir(), 0, 0
	try := func(at uint64, b ...byte) {
		damaged := bytes.Clone(whole)
		copy(damaged[at:], b)
		if bytes.Equal(damaged, whole) {
			return
		}
		tried++
		changed := filepath.Join(dir, fmt.Sprint(tried))
		if err := os.WriteFile(changed, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Verify(t.Context(), changed); errors.Is(err, ErrDamaged) {
			found++
		} else if err != nil {
			t.Errorf("byte %d of page %d becomes %x: got %v, want ErrDamaged", at%size, at/size, b, err)
		}
		if err := os.Remove(changed); err != nil {
			t.Fatal(err)
		}
	}
	number := func(n uint64) []byte { return le.AppendUint64(nil, n) }
	for _, page := range []uint64{newest.root, below, child, newest.freelist} {
		try(page*size, number(1<<40)...)
		try(page*size+8, 0, 0)
		try(page*size+15, 0xff)
		if page == newest.freelist {
			continue
		}
		try(page*size+10, 0xff, 0xff)
		for i := range uint64(le.Uint16(whole[page*size+10:])) {
			element := page*size + pageHeader + i*elementSize
			for byteOf := range uint64(elementSize) {
				try(element+byteOf, whole[element+byteOf]^0x7f)
			}
		}
	}
	for i := range uint64(le.Uint16(whole[below*size+10:])) {
		// A circle, pages that are used already, and one beyond all.
		for _, page := range []uint64{below, 0, newest.root, newest.freelist, 1 << 60} {
			try(below*size+pageHeader+i*elementSize+8, number(page)...)
		}
	}
	if found < tried*9/10 {
		t.Errorf("%d of %d were refused", found, tried)
	}
}
