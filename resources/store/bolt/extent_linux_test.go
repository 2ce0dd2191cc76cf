package bolt

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHolesAreNotRead checks which parts of a file are read ahead: the data, and nothing after the last of it.
func TestHolesAreNotRead(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const page, size = 4 << 10, 16 << 20
	for _, at := range []int64{0, 8 << 20} {
		if _, err := f.WriteAt(make([]byte, page), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	var read int64
	for to := int64(0); ; {
		from := to
		if from, to, err = extent(f, from, size); err != nil {
			t.Fatal(err)
		}
		if from == to {
			break
		}
		read += to - from
	}
	if read < 2*page || read > 1<<20 {
		t.Errorf("%d bytes are read of two pages in %d", read, size)
	}
}

// TestAFileThatGrowsIsReadOnce: what another process writes behind a hole, after the size was read, is not read ahead, and
// does not make a server look for it for ever.
func TestAFileThatGrowsIsReadOnce(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const page, size = 4 << 10, 1 << 20
	for _, at := range []int64{0, 4 * size} {
		if _, err := f.WriteAt(make([]byte, page), at); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{page, size} {
		if begins, ends, err := extent(f, from, size); err != nil || begins != size || ends != size {
			t.Errorf("after %d of %d: data from %d to %d, %v, want none", from, size, begins, ends, err)
		}
	}
}
