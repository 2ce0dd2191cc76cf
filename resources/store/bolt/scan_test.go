package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestScanFindsAll checks that the scan of an undamaged file equals the store.
func TestScanFindsAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 100} {
		path, before := filled(t, n)
		if err := Verify(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		s, err := ScanFile(path)
		if err != nil || !s.Whole || len(s.Problems) > 0 || len(s.Strays) > 0 || s.Revision != before.Revision() {
			t.Fatalf("%d: whole %v, problems %q, %d strays, revision %d of %d, %v", n, s.Whole, s.Problems,
				len(s.Strays), s.Revision, before.Revision(), err)
		}
		count := 0
		for r := range store.All(before) {
			count++
			if !contains(s, r.Name, r.Revision) {
				t.Fatalf("%d: %s is missing", n, r.Key)
			}
		}
		if count != len(s.Resources) {
			t.Fatalf("%d: %d resources of %d", n, len(s.Resources), count)
		}
	}
}

func contains(s *Scan, name string, revision uint64) bool {
	for _, r := range s.Resources {
		if r.Name == name && r.Revision == revision {
			return true
		}
	}
	return false
}

// TestScanOfDamage flips bits, blanks pages and cuts ends all over a file. The scan never fails, never calls a file
// whole that the server refuses for its content, and never yields a resource that was not written.
func TestScanOfDamage(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 60)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	good = good[:usedBytes(t, path)]
	random := rand.New(rand.NewPCG(3, 3))
	dir, refused := t.TempDir(), 0
	for i := range 200 {
		damaged, bad := filepath.Join(dir, fmt.Sprint(i)), bytes.Clone(good)
		switch at := random.IntN(len(bad)); i % 4 {
		case 0, 1:
			bad[at] ^= 1 << random.IntN(8)
		case 2:
			clear(bad[at/4096*4096 : (at/4096+1)*4096])
		case 3:
			bad = bad[:at]
		}
		if err := os.WriteFile(damaged, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ScanFile(damaged)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Resources {
			if now := before.Get(r.Key); s.Whole && s.Revision == before.Revision() && (now == nil || !storetest.Equal(now, r)) {
				t.Fatalf("damage %d: %s was not written so", i, r.Key)
			}
		}
		if Verify(t.Context(), damaged) != nil {
			refused++
			continue
		}
		if !s.Whole {
			t.Errorf("damage %d: the server takes the file, and the scan says %q", i, s.Problems)
		}
	}
	if refused < 50 {
		t.Errorf("only %d of 200 were refused", refused)
	}
}

// TestScanFindsStrays checks that leaves are found even if the tree's root is gone.
func TestScanFindsStrays(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 60)
	var root uint64
	edit(t, path, func(tx *bbolt.Tx) error { root = uint64(tx.Bucket(resourcesBucket).Root()); return nil })
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(os.Getpagesize())
	clear(data[root*size : (root+1)*size])
	s := scan(data)
	found := map[string]uint64{}
	for _, r := range s.Strays {
		found[r.Name] = r.Revision
	}
	for r := range store.All(before) {
		if found[r.Name] != r.Revision {
			t.Fatalf("%s at %d: found is revision %d; problems %q", r.Name, r.Revision, found[r.Name], s.Problems)
		}
	}
	if s.Whole || s.Revision < before.Revision() {
		t.Errorf("whole %v, revision %d of %d", s.Whole, s.Revision, before.Revision())
	}
}

func FuzzScan(f *testing.F) {
	path, _ := filled(f, 5)
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:6*4096])
	f.Add([]byte("no store"))
	f.Fuzz(func(_ *testing.T, data []byte) { scan(data) })
}
