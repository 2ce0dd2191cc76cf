package server

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// ErrDataDir reports that other users may write a server's data.
var ErrDataDir = errors.New("the data directory does not belong to the server")

// MakeDataDir checks a server's data directory. It creates a missing one, for its owner alone.
func MakeDataDir(dir string, log *slog.Logger) error {
	if err := CheckDataDir(dir, log); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// CheckDataDir checks a server's data directory and its first level before the server trusts its contents. It refuses
// what everyone may write. It warns about what a group may write, as with Kubernetes' fsGroup, and about a directory
// that everyone may read.
func CheckDataDir(dir string, log *slog.Logger) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := notWritable(dir, info); err != nil {
		return err
	}
	switch mode := info.Mode().Perm(); {
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder", ErrDataDir, dir)
	case mode&0o020 != 0:
		log.Warn("the group of the data directory may write it, so its members can replace what the server trusts; run chmod 700 unless you intend that",
			"folder", dir, "mode", fmt.Sprintf("%04o", mode))
	case mode&0o005 != 0:
		log.Warn("others may read the data directory: run chmod 700", "folder", dir, "mode", fmt.Sprintf("%04o", mode))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the data directory: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := notWritable(filepath.Join(dir, e.Name()), info); err != nil {
			return err
		}
	}
	return nil
}

func notWritable(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if (mode.IsDir() || mode.IsRegular()) && mode.Perm()&0o002 != 0 {
		return fmt.Errorf("%w: everybody may write %s (mode %04o): check its contents, then run: chmod -R go-w %s (if you may not, name a new folder in it)", ErrDataDir, path, mode.Perm(), path)
	}
	return nil
}
