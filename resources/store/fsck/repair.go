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

// Repair mends what is safe to mend, and keeps what was there beside. It goes on after an error, and returns all of them.
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

// seeFirst is the advice about details of damage.
const seeFirst = "see the first finding about this file"

// rebuilt reports whether the store's file was written anew.
func (r *Report) rebuilt() bool {
	for i := range r.Findings {
		if r.Findings[i].rebuilds && r.Findings[i].Repaired {
			return true
		}
	}
	return false
}

// rebuild writes the file anew with all that was read, which is all that was written, and moves the damaged one aside.
func (r *Report) rebuild(path string) error {
	fresh := path + ".repaired"
	if err := bolt.Create(fresh, r.scan.Revision, r.scan.Resources); err != nil {
		return err
	}
	if err := aside(path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return os.Rename(fresh, path)
}

// aside renames a file to say that it was damaged, and when that was seen.
func aside(path string) error {
	return os.Rename(path, path+".damaged-"+time.Now().UTC().Format("20060102-150405.000"))
}

// ErrNothingToSalvage: there is no store's file in the folder, or nothing in it can be read.
var ErrNothingToSalvage = errors.New("nothing can be read of the store")

// Salvage writes a backup of all that can be read: resources of the tree, those that only loose pages have, which may have been
// deleted since, and the files of folders beside the store that a backup of a server has. It returns how many resources there are.
func (r *Report) Salvage(w io.Writer, h archive.Header, folders ...string) (int, error) {
	if r.scan == nil || len(r.scan.Resources)+len(r.scan.Strays) == 0 {
		return 0, ErrNothingToSalvage
	}
	files, err := archive.Collect(r.Dir, folders...)
	if err != nil {
		return 0, err
	}
	all := append(append([]*resources.Resource(nil), r.scan.Resources...), r.scan.Strays...)
	view := store.NewReplica(store.ReplicaConfig{})
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

// ServerOf says whose folder it is, by what is in it: "zone" or "global".
func ServerOf(dir string) string {
	for _, name := range []string{"membership", "identity"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return "zone"
		}
	}
	return "global"
}
