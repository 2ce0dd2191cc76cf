package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Collect reads the files in folders of a data folder. Missing folders count as empty. Names that begin with a dot are
// unfinished files and are left out.
func Collect(dataDir string, folders ...string) ([]File, error) {
	var files []File
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(dataDir, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case strings.HasPrefix(d.Name(), "."), !d.Type().IsRegular():
				return nil
			}
			f, err := collect(dataDir, path)
			files = append(files, f)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("files for the backup: %w", err)
		}
	}
	return files, nil
}

func collect(dataDir, path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if info.Size() > maxFile {
		return File{}, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path) //nolint:gosec // below the data folder
	if err != nil {
		return File{}, err
	}
	below, err := filepath.Rel(dataDir, path)
	return File{Path: filepath.ToSlash(below), Mode: uint32(info.Mode().Perm()), Data: data}, err
}

// Restore writes the backup's files below the data folder. It calls write, which must make a file durable. If a file
// exists with other content, Restore returns an error that wraps fs.ErrExist, unless overwrite is set. It checks all
// files before it writes any.
func (b *Backup) Restore(dataDir string, overwrite bool, write func(path string, data []byte, mode fs.FileMode) error) error {
	for _, f := range b.Files {
		there, err := os.ReadFile(filepath.Join(dataDir, filepath.FromSlash(f.Path))) //nolint:gosec // checked to be below the data folder
		if err == nil && !overwrite && string(there) != string(f.Data) {
			return fmt.Errorf("%s in %s is another one than in the backup: %w", f.Path, dataDir, fs.ErrExist)
		}
	}
	for _, f := range b.Files {
		path := filepath.Join(dataDir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := write(path, f.Data, fs.FileMode(f.Mode)&0o700); err != nil {
			return err
		}
	}
	return nil
}
