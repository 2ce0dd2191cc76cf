package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// This is the layout of bbolt's file, as far as reading leaves needs it: pages of one size, each with a header of id,
// flags, number of elements and number of following pages; elements with offsets relative to themselves. All numbers
// are little endian.
const (
	pageHeader   = 16
	elementSize  = 16
	branchPage   = 0x01
	leafPage     = 0x02
	bucketLeaf   = 0x01
	bucketHeader = 16
	metaMagic    = 0xED0CDAED
	// maxDepth is far beyond any tree that fits on a disk. It ends a cycle of pages.
	maxDepth = 64
)

// Scan is the readable part of a store's file, however damaged the file is.
type Scan struct {
	// Resources were found through the tree, with correct checksums.
	Resources []*resources.Resource
	// Strays were found only on pages outside the tree: old versions, or resources that a damaged branch has lost. They
	// have the newest revision of each key that Resources does not contain.
	Strays []*resources.Resource
	// Problems describes the damage in words.
	Problems []string
	// Revision is that of the store, or zero if it could not be read. Whole reports that everything the file should
	// contain was found.
	Revision uint64
	Whole    bool
	// LostMeta reports that one of the two pages that lead to the data is damaged. Each write replaces the older one, so
	// the file is then as the last write or the one before it left it: nothing tells which.
	LostMeta bool

	data     []byte
	pageSize int
	visited  map[uint64]bool
	sums     totals
	stated   totals
	hasState bool
}

// ScanFile reads a file page by page and checks everything itself, so it never fails on damage. Errors are the
// operating system's.
func ScanFile(path string) (*Scan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return scan(data), nil
}

func scan(data []byte) *Scan {
	s := &Scan{data: data, visited: map[uint64]bool{}}
	root, err := s.root()
	if err != nil {
		s.problem("%v", err)
	} else {
		s.tree(root, 0, nil)
	}
	s.Revision = s.stated.Revision
	s.sums.Revision = s.stated.Revision
	s.Whole = s.hasState && s.sums == s.stated
	if s.hasState && !s.Whole {
		s.problem("%d resources could be read, and %d were written (sums %x and %x)", s.sums.Count, s.stated.Count,
			s.sums.Sum, s.stated.Sum)
	}
	if !s.hasState {
		s.problem("the number of resources and the revision cannot be read")
	}
	if !s.Whole {
		s.strays()
	}
	return s
}

func (s *Scan) problem(format string, args ...any) {
	const most = 100
	if len(s.Problems) < most {
		s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
	}
}

var errNoMeta = errors.New("neither of the two first pages is one of a store: nothing leads to the rest")

// root finds the newer of the two meta pages and returns the page of the root bucket.
func (s *Scan) root() (uint64, error) {
	const sizes = 8 // 1 to 128 KiB: bbolt uses the page size of the machine that made the file
	for shift := range sizes {
		size := 1024 << shift
		if m, valid := newestMeta(s.data, size); valid > 0 {
			s.LostMeta = valid == 1
			s.pageSize = size
			return m.root, nil
		}
	}
	s.pageSize = os.Getpagesize()
	return 0, errNoMeta
}

// meta is what a meta page says: the pages of the root bucket and of the free list, and its transaction.
type meta struct{ root, freelist, tx uint64 }

// newestMeta returns the newer of the two metas at the beginning of a file with pages of this size, and how many of the
// two are valid. Without a valid one there is no newest.
func newestMeta(data []byte, size int) (newest meta, valid int) {
	for id := range 2 {
		at := id*size + pageHeader
		if at+64 > len(data) {
			continue
		}
		m := data[at:]
		le := binary.LittleEndian
		sum := fnv64(m[:56])
		if le.Uint32(m) != metaMagic || int(le.Uint32(m[8:])) != size || le.Uint64(m[56:]) != sum {
			continue
		}
		if tx := le.Uint64(m[48:]); valid == 0 || tx > newest.tx {
			newest = meta{root: le.Uint64(m[16:]), freelist: le.Uint64(m[32:]), tx: tx}
		}
		valid++
	}
	return newest, valid
}

// fnv64 computes FNV-1a, the checksum at the end of meta pages.
func fnv64(b []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, c := range b {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return sum
}

// page returns a page with its following pages.
func (s *Scan) page(id uint64) ([]byte, bool) {
	pages := uint64(len(s.data) / s.pageSize)
	if id >= pages {
		return nil, false
	}
	p := s.data[id*uint64(s.pageSize):]
	overflow := uint64(binary.LittleEndian.Uint32(p[12:]))
	if overflow >= pages-id {
		return nil, false
	}
	return p[:(overflow+1)*uint64(s.pageSize)], true
}

// tree reads the pages below id. bucket is the name of their bucket, nil for the root.
func (s *Scan) tree(id uint64, depth int, bucket []byte) {
	p, ok := s.page(id)
	if !ok || depth > maxDepth || s.visited[id] || binary.LittleEndian.Uint64(p) != id {
		s.problem("page %d, to which the tree leads, makes no sense", id)
		return
	}
	s.visited[id] = true
	s.elements(id, p, depth, bucket)
}

// elements reads one page, or the inline page in a bucket's value.
func (s *Scan) elements(id uint64, p []byte, depth int, bucket []byte) {
	le := binary.LittleEndian
	flags, count := le.Uint16(p[8:]), int(le.Uint16(p[10:]))
	if flags != leafPage && flags != branchPage || pageHeader+count*elementSize > len(p) {
		s.problem("page %d is neither a branch nor a leaf", id)
		return
	}
	for i := range count {
		at := pageHeader + i*elementSize
		e := p[at:]
		if flags == branchPage {
			s.tree(le.Uint64(e[8:]), depth+1, bucket)
			continue
		}
		key, value, ok := leaf(p, at)
		if !ok {
			s.problem("page %d: element %d points out of the page", id, i)
			continue
		}
		s.element(id, le.Uint32(e), key, value, depth, bucket)
	}
}

// leaf returns key and value of the element at an offset of a page.
func leaf(p []byte, at int) (key, value []byte, ok bool) {
	le := binary.LittleEndian
	begin := uint64(at) + uint64(le.Uint32(p[at+4:]))
	middle := begin + uint64(le.Uint32(p[at+8:]))
	end := middle + uint64(le.Uint32(p[at+12:]))
	if end > uint64(len(p)) {
		return nil, nil, false
	}
	return p[begin:middle], p[middle:end], true
}

func (s *Scan) element(id uint64, flags uint32, key, value []byte, depth int, bucket []byte) {
	switch {
	case flags&bucketLeaf != 0:
		if len(value) < bucketHeader || bucket != nil {
			s.problem("page %d: the bucket %q cannot be read", id, key)
			return
		}
		if root := binary.LittleEndian.Uint64(value); root != 0 {
			s.tree(root, depth+1, key)
		} else if inline := value[bucketHeader:]; len(inline) >= pageHeader {
			s.elements(id, inline, depth+1, key)
		}
	case bytes.Equal(bucket, resourcesBucket):
		r, err := store.DecodeEntry(key, value)
		if err != nil {
			s.problem("page %d: resource %v", id, err)
			return
		}
		s.sums.add(value)
		s.Resources = append(s.Resources, r)
	case bytes.Equal(bucket, storeBucket) && bytes.Equal(key, stateKey):
		t, err := decodeTotals(value)
		if err != nil {
			s.problem("page %d: %v", id, err)
			return
		}
		s.stated, s.hasState = t, true
	}
}

// strays reads every leaf that the tree does not reach.
func (s *Scan) strays() {
	known := make(map[resources.Key]bool, len(s.Resources))
	for _, r := range s.Resources {
		known[r.Key] = true
	}
	newest := map[resources.Key]*resources.Resource{}
	for id := uint64(2); id < uint64(len(s.data)/s.pageSize); id++ {
		p, ok := s.page(id)
		if !ok {
			p = s.data[id*uint64(s.pageSize) : (id+1)*uint64(s.pageSize)]
		}
		count := int(binary.LittleEndian.Uint16(p[10:]))
		if s.visited[id] && ok || binary.LittleEndian.Uint16(p[8:]) != leafPage {
			continue
		}
		for i := 0; i < count && pageHeader+(i+1)*elementSize <= len(p); i++ {
			key, value, ok := leaf(p, pageHeader+i*elementSize)
			if !ok {
				continue
			}
			r, err := store.DecodeEntry(key, value)
			if err == nil && !known[r.Key] && (newest[r.Key] == nil || newest[r.Key].Revision < r.Revision) {
				newest[r.Key] = r
			}
		}
	}
	for _, r := range newest {
		s.Strays = append(s.Strays, r)
		s.Revision = max(s.Revision, r.Revision)
	}
	for _, r := range s.Resources {
		s.Revision = max(s.Revision, r.Revision)
	}
}
