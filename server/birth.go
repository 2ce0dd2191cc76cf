package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// placeFile, in a data directory, records the folder in which it was written.
const placeFile = "place"

// IsCopy reports whether a data directory is a copy of another one, made by any means: its files record another folder.
// A folder that was moved on its disk is not a copy. The result is false if this is unknown: for a folder without a
// call of Settle, and on a file system without birth times.
func IsCopy(dir string) (bool, error) {
	now, err := birthOf(dir)
	if err != nil || now == "" {
		return false, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, placeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	was := strings.TrimSpace(string(raw))
	return err == nil && was != "" && was != now, err
}

// Settle records in a data directory that it is not a copy from now on.
func Settle(dir string) error {
	now, err := birthOf(dir)
	if err != nil || now == "" {
		return err
	}
	if raw, err := os.ReadFile(filepath.Join(dir, placeFile)); err == nil && strings.TrimSpace(string(raw)) == now {
		return nil
	}
	return WriteFile(filepath.Join(dir, placeFile), []byte(now+"\n"), 0o644)
}
