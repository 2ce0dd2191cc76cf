package archive

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Restore writes the backup's files below the data folder, which must exist, each durably and for its owner alone. It
// checks all of them before it writes any, and then begins the restore of the backup in file, which the caller ends
// (End) once the store is restored too. It never writes through a link or replaces something that is not a regular
// file, whatever overwrite says. If a file exists with other content, Restore returns an error that wraps fs.ErrExist,
// unless overwrite is set.
func (b *Backup) Restore(dataDir, file string, overwrite bool) (err error) {
	root, err := os.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for i := range b.Files {
		if err := b.Files[i].fits(root, overwrite); err != nil {
			return err
		}
	}
	if err := Begin(dataDir, file); err != nil {
		return err
	}
	for i := range b.Files {
		if err := b.Files[i].write(root); err != nil {
			return fmt.Errorf("%s in %s: %w", b.Files[i].Path, dataDir, err)
		}
	}
	return nil
}

// fits returns why the file cannot be written to its place.
func (f *File) fits(root *os.Root, overwrite bool) error {
	for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
		info, err := root.Lstat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s in %s is not a folder of its own (%s), so nothing is restored through it: remove it, or restore to another folder", dir, root.Name(), info.Mode().Type())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := root.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s in %s is not a regular file (%s), and nothing is restored in its place: remove it, or restore to another folder", f.Path, root.Name(), info.Mode().Type())
	case overwrite:
		return nil
	}
	if info.Size() == int64(len(f.Data)) {
		there, err := root.ReadFile(f.Path)
		if err != nil || string(there) == string(f.Data) {
			return err
		}
	}
	return fmt.Errorf("%s in %s is another one than in the backup: %w", f.Path, root.Name(), fs.ErrExist)
}

// write replaces the file atomically: a crash leaves the old file or the whole new one.
func (f *File) write(root *os.Root) error {
	dir := path.Dir(f.Path)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unfinished := path.Join(dir, "."+rand.Text())
	out, err := root.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.Data)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = root.Rename(unfinished, f.Path)
	}
	if err != nil {
		return errors.Join(err, root.Remove(unfinished))
	}
	return syncFolder(root, dir)
}

func syncFolder(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
