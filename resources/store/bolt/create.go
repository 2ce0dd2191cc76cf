package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
)

// Create creates a file with these resources at a revision. The file is complete when it appears under path. Errors:
// fs.ErrExist if the path exists, and the operating system's.
func Create(path string, revision uint64, rs []*resources.Resource) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, errors.Join(err, fs.ErrExist))
	}
	unfinished := path + ".unfinished"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fill(unfinished, revision, rs); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", unfinished, err), os.Remove(unfinished))
	}
	return place.Rename(unfinished, path)
}

// Replace is like Create, but replaces an existing file in one step: if the process is killed, either the old or the
// new file is there. No process may have the file open. Errors are the operating system's.
func Replace(path string, revision uint64, rs []*resources.Resource) error {
	fresh := path + ".fresh"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Create(fresh, revision, rs); err != nil {
		return err
	}
	if err := place.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}

func fill(path string, revision uint64, rs []*resources.Resource) error {
	f, err := openFile(path, time.Second)
	if err != nil {
		return err
	}
	changes := make(map[resources.Key]*resources.Resource, len(rs))
	for _, r := range rs {
		changes[r.Key] = r
	}
	return errors.Join(f.write(revision, changes), f.close())
}
