package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/place"
)

// WriteFile replaces the file at path with data, atomically and durably: a reader, or a crash, sees the old file or the
// whole new one. The folder must exist. It does not replace a device or a pipe, which others use.
func WriteFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := beside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return place.Rename(f.Name(), path)
}

// CheckFile returns an error if WriteFile cannot write to path now. Call it before creating a secret that can be shown
// only once.
func CheckFile(path string) error {
	f, err := beside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// beside creates a temporary file in path's folder, unless path is something other than a file.
func beside(path string) (*os.File, error) {
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: it is not a regular file, and would be replaced by one: give another name", path)
	}
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// WriteReadyFile tells the program that started the server that it serves, and where: a JSON object of names (api, kds,
// xds, diagnostics) to bound addresses. An empty path writes nothing.
func WriteReadyFile(path string, addresses map[string]string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'), 0o644)
}
