package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// noFreelist stands in a meta page for the page of the free list if the file has none.
const noFreelist = ^uint64(0)

// checkPages refuses a file whose pages would lead bbolt out of the file or round in circles. bbolt checks a file in
// its own goroutine, where such a fault ends the process (recoverDamage cannot help there), and follows a circle until
// memory runs out. So this comes before anything that follows pages.
func (f *file) checkPages(disk io.ReaderAt) (err error) {
	defer recoverDamage(f.path, &err)()
	tx, err := f.db.Begin(false)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := fitsFile(f.path, tx.Size()); err != nil {
		return err
	}
	size := f.db.Info().PageSize
	w := &walk{
		disk:     disk,
		pageSize: uint64(size),
		claimed:  make([]bool, tx.Size()/int64(size)),
		page:     make([]byte, size),
	}
	err = w.all(tx.Cursor().Bucket())
	f.lostMeta = w.lostMeta
	if wrong := errNonsense(""); errors.As(err, &wrong) {
		return damaged(f.path, "%w", err)
	} else if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// walk follows the pages in use and checks where they lead. It reads headers and elements, but no keys, and of
// values only the roots of buckets.
type walk struct {
	disk     io.ReaderAt
	pageSize uint64
	// claimed has the pages found so far: each may be found once.
	claimed []bool
	// next are the pages to follow.
	next []uint64
	// page is the buffer for a page.
	page []byte
	// lostMeta reports that one of the two meta pages is damaged.
	lostMeta bool
}

// errNonsense is what is wrong with a page. All other errors are the operating system's.
type errNonsense string

func (e errNonsense) Error() string { return string(e) }

func nonsense(format string, args ...any) error { return errNonsense(fmt.Sprintf(format, args...)) }

// all checks the pages of the metas, the free list and everything below the root bucket.
func (w *walk) all(root *bbolt.Bucket) error {
	metas := make([]byte, 2*w.pageSize)
	if _, err := w.disk.ReadAt(metas, 0); err != nil {
		return err
	}
	w.claimed[0], w.claimed[1] = true, true
	m, valid := newestMeta(metas, len(w.page))
	w.lostMeta = valid == 1
	if valid > 0 && m.freelist != noFreelist {
		if _, err := w.claim(m.freelist); err != nil {
			return err
		}
	}
	for w.next = []uint64{uint64(root.Root())}; len(w.next) > 0; {
		id := w.next[len(w.next)-1]
		w.next = w.next[:len(w.next)-1]
		if err := w.follow(id); err != nil {
			return err
		}
	}
	return nil
}

// claim reads the first page of those that begin at id, and returns the size of all of them.
func (w *walk) claim(id uint64) (size uint64, err error) {
	pages := uint64(len(w.claimed))
	if id >= pages {
		return 0, nonsense("page %d is beyond the %d pages of the file", id, pages)
	}
	if _, err := w.disk.ReadAt(w.page, int64(id*w.pageSize)); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	if said := le.Uint64(w.page); said != id {
		return 0, nonsense("page %d says that it is page %d", id, said)
	}
	following := uint64(le.Uint32(w.page[12:]))
	if following >= pages-id {
		return 0, nonsense("page %d has %d following pages, beyond the %d pages of the file", id, following, pages)
	}
	for i := id; i <= id+following; i++ {
		if w.claimed[i] {
			return 0, nonsense("page %d is used twice", i)
		}
		w.claimed[i] = true
	}
	return (following + 1) * w.pageSize, nil
}

// follow checks a page of a tree and adds those that it leads to.
func (w *walk) follow(id uint64) error {
	size, err := w.claim(id)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	flags, count := le.Uint16(w.page[8:]), uint64(le.Uint16(w.page[10:]))
	if flags != branchPage && flags != leafPage {
		return nonsense("page %d is neither a branch nor a leaf", id)
	}
	table := pageHeader + count*elementSize
	if table > size {
		return nonsense("page %d has %d elements, beyond its end", id, count)
	}
	p := w.page
	if table > w.pageSize {
		p = make([]byte, table)
		if _, err := w.disk.ReadAt(p, int64(id*w.pageSize)); err != nil {
			return err
		}
	}
	for at := uint64(pageHeader); at < table; at += elementSize {
		var begin, end uint64 // of a leaf's value; the key is before it
		e := p[at:]
		if flags == branchPage {
			end = at + uint64(le.Uint32(e)) + uint64(le.Uint32(e[4:]))
			w.next = append(w.next, le.Uint64(e[8:]))
		} else {
			begin = at + uint64(le.Uint32(e[4:])) + uint64(le.Uint32(e[8:]))
			end = begin + uint64(le.Uint32(e[12:]))
		}
		if end > size {
			return nonsense("page %d: element %d points out of the page", id, (at-pageHeader)/elementSize)
		}
		if flags == leafPage && le.Uint32(e)&bucketLeaf != 0 {
			if err := w.bucket(id, begin, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket adds the pages of a bucket, whose header stands on a page. It has none if its elements follow the header.
func (w *walk) bucket(id, begin, end uint64) error {
	if end-begin < bucketHeader {
		return nonsense("page %d: a bucket has no root", id)
	}
	root := make([]byte, 8)
	if _, err := w.disk.ReadAt(root, int64(id*w.pageSize+begin)); err != nil {
		return err
	}
	if page := binary.LittleEndian.Uint64(root); page != 0 {
		w.next = append(w.next, page)
	}
	return nil
}
