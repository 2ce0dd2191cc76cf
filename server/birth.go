package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// placeFile says, in a data directory, which folder it was written in.
const placeFile = "place"

// IsCopy reports whether a data directory is a copy of another one, made by whatever means: its files say that they were written in
// another folder. A folder that was moved on its disk is none. It is false while nothing is known: for a folder that Settle was never
// called for, and where the file system does not say when a folder was made.
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

// Settle has a data directory know itself: it is no copy from now on.
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
