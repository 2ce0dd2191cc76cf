package fsck

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// Repair fixes what is safe to fix and keeps the originals. It continues after an error and returns all errors.
func (r *Report) Repair() error {
	var failed []error
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.repair == nil {
			continue
		}
		if err := f.repair(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.Where, err))
			continue
		}
		f.Repaired = true
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.repair == nil && f.Do == seeFirst && r.rebuilt() {
			f.Repaired = true
		}
	}
	return errors.Join(failed...)
}

// seeFirst is the remedy for details of damage.
const seeFirst = "see the first finding about this file"

// rebuilt reports whether a repair rewrote the file of the store.
func (r *Report) rebuilt() bool {
	for i := range r.Findings {
		if r.Findings[i].rebuilds && r.Findings[i].Repaired {
			return true
		}
	}
	return false
}

// rebuild writes a new file with everything that was read, which is everything that was written. The damaged file first
// gets a second name, and is then replaced atomically: there is always a store, and an interrupted repair can be
// repeated.
func (r *Report) rebuild(path string) error {
	if err := os.Link(path, asideOf(path)); err != nil {
		return err
	}
	return bolt.Replace(path, r.scan.Revision, r.scan.Resources)
}

// aside renames a file so that its name shows that it was damaged, and when that was found.
func aside(path string) error { return os.Rename(path, asideOf(path)) }

func asideOf(path string) string {
	return path + ".damaged-" + time.Now().UTC().Format("20060102-150405.000")
}

// ErrNothingToSalvage reports that the folder has no file of a store, or that nothing in the file can be read.
var ErrNothingToSalvage = errors.New("nothing can be read of the store")

// Salvage writes a backup of everything that can be read: the resources of the tree, those found only on loose pages,
// which may have been deleted since, and the files of the folders that a server's backup contains. It returns the
// number of resources.
func (r *Report) Salvage(w io.Writer, h archive.Header, folders ...string) (int, error) {
	if r.scan == nil || len(r.scan.Resources)+len(r.scan.Strays) == 0 {
		return 0, ErrNothingToSalvage
	}
	files, err := archive.Collect(r.Dir, folders...)
	if err != nil {
		return 0, err
	}
	all := append(append([]*resources.Resource(nil), r.scan.Resources...), r.scan.Strays...)
	view := store.NewView(store.ViewConfig{})
	err = view.Load(func(put func(*resources.Resource) error) (uint64, error) {
		seen := map[resources.Key]bool{}
		for _, one := range all {
			if seen[one.Key] {
				continue
			}
			seen[one.Key] = true
			if err := put(one); err != nil {
				return 0, err
			}
		}
		return r.scan.Revision, nil
	})
	if err != nil {
		return 0, err
	}
	return len(all), archive.Write(w, h, view.Snapshot(), files)
}

// ServerOf returns the kind of server that owns the folder, judging by its contents: "zone" or "global".
func ServerOf(dir string) string {
	for _, name := range []string{"membership", "identity"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return "zone"
		}
	}
	return "global"
}
