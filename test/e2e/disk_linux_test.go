package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// disk is a global and a zone whose disks are about to fail.
type disk struct {
	*mesh
	zone         *cluster.Server
	acknowledged int
}

func (d *disk) name(i int) string { return fmt.Sprintf("kept-%d", i) }

func (d *disk) put(s *cluster.Server, name string) error {
	return s.API.Put(d.t.Context(), "/meshes/default/meshtimeouts/"+name, timeoutOf(name, "1"))
}

// keeps writes to the global, which must accept it.
func (d *disk) keeps() {
	d.t.Helper()
	d.eventually("the global to take a write",
		func(context.Context) error { return d.put(d.global, d.name(d.acknowledged)) })
	d.acknowledged++
}

// agrees waits until the global and the zone have exactly what was acknowledged.
func (d *disk) agrees() {
	d.t.Helper()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		d.eventually(s.Name()+" to have all that was acknowledged", func(ctx context.Context) error {
			all, err := timeouts(ctx, s)
			if err == nil && len(all) != d.acknowledged {
				err = fmt.Errorf("%d of %d", len(all), d.acknowledged)
			}
			for i := range d.acknowledged {
				if _, ok := all[d.name(i)]; err == nil && !ok {
					err = fmt.Errorf("%s is not there", d.name(i))
				}
			}
			return err
		})
	}
}

// limit limits the size of a running server's files, in bytes, like a full disk.
func (d *disk) limit(s *cluster.Server, size uint64) {
	d.t.Helper()
	d.must(unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil))
}

// TestDiskThatFillsUp checks that a server with a full disk reports that to each writer, still answers readers, and
// accepts writes again once there is room. After a kill, it has what it acknowledged and nothing that it refused.
func TestDiskThatFillsUp(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	for round, s := range []*cluster.Server{d.global, d.zone} {
		d.limit(s, 4096)
		for i := range 3 {
			name := fmt.Sprintf("refused-%d-%d", round, i)
			if err := d.put(s, name); cluster.StatusOf(err) < http.StatusInternalServerError {
				t.Errorf("a write to the full disk of %s was answered with %v", s.Name(), err)
			}
		}
		all, err := timeouts(t.Context(), s)
		if err != nil || len(all) != d.acknowledged {
			t.Errorf("%s answers readers with %d of %d (%v)", s.Name(), len(all), d.acknowledged, err)
		}
		d.limit(s, unix.RLIM_INFINITY)
		d.keeps()
		d.agrees()
	}
	d.global.Kill()
	d.zone.Kill()
	d.must(d.global.Start(t.Context()))
	d.must(d.zone.Start(t.Context()))
	d.agrees()
}

// TestDamagedFileIsNotServed checks that a server with a damaged store, or without the one that it had, does not start,
// names the file, advises what to do, and leaves the file unchanged. It never starts with less, or with nothing.
func TestDamagedFileIsNotServed(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	for range 5 {
		d.keeps()
	}
	d.agrees()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		d.must(s.Stop(t.Context()))
		path := filepath.Join(s.DataDir, "causeway.db")
		whole, err := os.ReadFile(path)
		d.must(err)
		flipped := bytes.Clone(whole)
		for i := range flipped[:16<<10] { // both meta pages, and what they point to
			flipped[i] ^= 0x10
		}
		for name, damaged := range map[string][]byte{
			"cut to three pages": whole[:3*4096], "cut to a page": whole[:4096], "empty": {}, "flipped bits": flipped,
			"something else": []byte(strings.Repeat("not a store\n", 10_000)),
		} {
			d.must(os.WriteFile(path, damaged, 0o600))
			before := len(s.Log())
			if err := s.Start(t.Context()); err == nil {
				t.Fatalf("%s starts with a file that is %s", s.Name(), name)
			}
			said := s.Log()[min(before, len(s.Log())):]
			if !strings.Contains(said, path) || !strings.Contains(said, "backup") {
				t.Errorf("%s, %s: it does not say which file, and what to do:\n%s", s.Name(), name, said)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, damaged) {
				t.Errorf("%s, %s: the file was changed (%v)", s.Name(), name, err)
			}
		}
		d.must(os.Remove(path))
		before := len(s.Log())
		if err := s.Start(t.Context()); err == nil {
			t.Fatalf("%s starts without its file", s.Name())
		}
		said := s.Log()[min(before, len(s.Log())):]
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(said, path) ||
			!strings.Contains(said, "backup") {
			t.Errorf("%s without its file makes one (%v), or does not say what to do:\n%s", s.Name(), err, said)
		}
		d.must(os.WriteFile(path, whole, 0o600))
		d.must(s.Start(t.Context()))
		d.agrees()
	}
}
