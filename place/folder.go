package place

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// lookEvery is how often Run checks. Run reports a missing folder within that time, even if no other code calls Check.
const lookEvery = 500 * time.Millisecond

// Folder is a server's data folder, and the files in it that a restart needs to resume in the current state. It is safe
// for concurrent use.
type Folder struct {
	dir *Place

	mu    sync.Mutex
	needs []*need // guarded by mu
}

// HoldFolder opens the folder, which must exist. Errors are the operating system's.
func HoldFolder(path string) (*Folder, error) {
	dir, err := Hold(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return &Folder{dir: dir}, nil
}

// HoldData is HoldFolder with one needed file (Need) and any number of kept files (Keep).
func HoldData(path, needed string, kept ...string) (*Folder, error) {
	f, err := HoldFolder(path)
	if err != nil {
		return nil, err
	}
	f.Need(needed)
	for _, name := range kept {
		err = errors.Join(err, f.Keep(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close releases the folder.
func (f *Folder) Close() error { return f.dir.Close() }

// Need adds files, by their paths in the folder, that Check must find. It skips files that do not exist now. They may
// be replaced.
func (f *Folder) Need(names ...string) {
	for _, name := range names {
		path := filepath.Join(f.dir.path, name)
		if _, err := os.Stat(path); err == nil {
			f.add(&need{path: path})
		}
	}
}

// Keep is Need for a small file whose content must not change. Errors are the operating system's.
func (f *Folder) Keep(name string) error {
	n := &need{path: filepath.Join(f.dir.path, name), fixed: true}
	var err error
	if n.was, err = stateOf(n.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		n.sum, err = sumOf(n.path)
	}
	if err == nil {
		f.add(n)
	}
	return err
}

func (f *Folder) add(n *need) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.needs, func(other *need) bool { return other.path == n.path }) {
		f.needs = append(f.needs, n)
	}
}

// Check returns nil while the folder and the needed files are in place. It costs one system call for each. Its error
// wraps ErrMoved or is that of the system call.
func (f *Folder) Check() error {
	if err := f.dir.Check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.needs {
		if err := n.check(); err != nil {
			return err
		}
	}
	return nil
}

// Run logs when the folder disappears and when it is back, until ctx ends. It returns nil.
func (f *Folder) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := ""
	for {
		now := ""
		if err := f.Check(); err != nil {
			now = err.Error()
		}
		switch now {
		case said:
		case "":
			log.Info("the data folder is in its place again: the server accepts writes", "folder", f.dir.path)
		default:
			log.Error("the data folder is not in its place: the server accepts no writes, because the next start would not find them", "folder", f.dir.path, "error", now)
		}
		said = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// need is a file that must be present.
type need struct {
	path string
	// fixed files must keep their content. was is the state of the file when it was last read.
	fixed bool
	sum   [sha256.Size]byte
	was   state
}

func (n *need) check() error {
	now, err := stateOf(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %w: it is not there: put it back, a restart needs it", n.path, ErrMoved)
	}
	if err != nil || !n.fixed || now.unchanged(n.was) {
		return err
	}
	changed := fmt.Errorf("%s %w: it holds something else now: put back what it held, a restart needs it",
		n.path, ErrMoved)
	if now.size() != n.was.size() {
		return changed
	}
	sum, err := sumOf(n.path)
	if err != nil {
		return err
	}
	if sum != n.sum {
		return changed
	}
	n.was = now
	return nil
}

func sumOf(path string) ([sha256.Size]byte, error) {
	raw, err := os.ReadFile(path)
	return sha256.Sum256(raw), err
}
