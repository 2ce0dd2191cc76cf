package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Collect reads the files in folders of a data folder: those that a backup may hold. Missing folders count as empty. It
// skips names that begin with a dot, which are unfinished files, and what no server writes: links, deeper folders, and
// names that no restore would accept.
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
			if err == nil && isHeld(f.Path) {
				files = append(files, f)
			}
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
