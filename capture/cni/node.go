package cni

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Node is the installation of the plugin on a node. Its methods are for one process at a time.
type Node struct {
	// Program is the file of the program that becomes the plugin: this one.
	Program string
	// BinDir and ConfDir are the node's folders of plugins and of their configuration.
	BinDir, ConfDir string
	// ConfFile is the list of plugins in ConfDir that the container runtime uses; the first one by name if it is empty,
	// as container runtimes choose.
	ConfFile string
	// Except are namespaces whose pods the plugin never captures.
	Except []string

	// known is the installed program as it was when its content was last compared.
	known fs.FileInfo
}

const (
	// maxConf limits files of configuration.
	maxConf = 1 << 20
	// newPrefix is that of files that are not complete yet. Container runtimes read none of them.
	newPrefix = "." + Name + "-new-"
)

// ErrNoList reports a node without a list of plugins to which the plugin can be added.
var ErrNoList = errors.New("no list of plugins")

// Install puts the plugin into its place: first the program, then its entry in the list of plugins, each by renaming a
// complete file. It reports whether something was missing or different.
func (n *Node) Install() (changed bool, err error) {
	if n.known == nil {
		n.removeNew() // at first: later ones may be another process's
	}
	program, err := n.installProgram()
	if err != nil {
		return false, fmt.Errorf("the plugin's program: %w", err)
	}
	entry, err := n.installEntry()
	return program || entry, err
}

// removeNew removes what a process has left that was killed while it wrote. Programs are large.
func (n *Node) removeNew() {
	for _, dir := range []string{n.BinDir, n.ConfDir} {
		left, _ := filepath.Glob(filepath.Join(dir, newPrefix+"*"))
		for _, path := range left {
			_ = os.Remove(path)
		}
	}
}

func (n *Node) target() string { return filepath.Join(n.BinDir, Name) }

// installProgram copies the program, unless it is there. Its content is compared when the file is another than before.
func (n *Node) installProgram() (changed bool, err error) {
	if is, err := os.Lstat(n.target()); err == nil && n.known != nil && os.SameFile(is, n.known) &&
		is.ModTime().Equal(n.known.ModTime()) && is.Size() == n.known.Size() && is.Mode() == n.known.Mode() {
		return false, nil
	}
	if is, err := os.Lstat(n.target()); err != nil || is.Mode() != 0o755 || !same(n.target(), n.Program) {
		want, err := os.Open(n.Program)
		if err != nil {
			return false, err
		}
		defer want.Close()
		if err := replace(n.target(), want, 0o755); err != nil {
			return false, err
		}
		changed = true
	}
	n.known, err = os.Lstat(n.target())
	return changed, err
}

// same reports whether two files have the same content. They are read in pieces: programs are large.
func same(one, other string) bool {
	a, err := os.Open(one)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := os.Open(other)
	if err != nil {
		return false
	}
	defer b.Close()
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		switch {
		case !bytes.Equal(x[:n], y[:m]):
			return false
		case errA != nil || errB != nil:
			return atEnd(errA) && atEnd(errB)
		}
	}
}

func atEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// installEntry adds the entry to the list of plugins.
func (n *Node) installEntry() (changed bool, err error) {
	path, err := n.list()
	if err != nil {
		return false, err
	}
	return edit(path, n.complete)
}

// complete returns a list with the entry. A list of a version that the plugin does not speak is refused: no pod of its
// node could start or end.
func (n *Node) complete(text []byte) ([]byte, error) {
	entry, err := entryOf(n.Except)
	if err == nil {
		err = spoken(text)
	}
	if err != nil {
		return nil, err
	}
	return with(text, entry)
}

// list returns the list of plugins that the container runtime uses.
func (n *Node) list() (string, error) {
	name := n.ConfFile
	if name == "" {
		all, err := os.ReadDir(n.ConfDir) // in the order of names
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(all, func(e fs.DirEntry) bool {
			return !e.IsDir() && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name()))
		})
		if i < 0 {
			return "", fmt.Errorf("%w in %s: the network of this node is not set up yet, or has its configuration in another folder",
				ErrNoList, n.ConfDir)
		}
		name = all[i].Name()
	}
	if filepath.Ext(name) != ".conflist" {
		return "", fmt.Errorf("%w: the container runtime uses %s, which has room for one plugin only: make it a .conflist",
			ErrNoList, name)
	}
	return filepath.Join(n.ConfDir, name), nil
}

// Uninstall removes the entry from all lists, and then the program. It leaves the program where an entry may be left, as
// in a list that another program has put aside or has copied: a container runtime that does not find it starts no pods.
func (n *Node) Uninstall() (removed bool, err error) {
	n.removeNew()
	lists, err := filepath.Glob(filepath.Join(n.ConfDir, "*.conflist"))
	if err != nil {
		return false, err
	}
	var failed error
	for _, path := range lists {
		if is, err := os.Lstat(path); err == nil && !is.Mode().IsRegular() {
			continue // Install adds nothing there
		}
		changed, err := edit(path, func(text []byte) ([]byte, error) {
			if !bytes.Contains(text, []byte(Name)) {
				return text, nil // whatever it is
			}
			return without(text)
		})
		removed = removed || changed
		failed = errors.Join(failed, err)
	}
	failed = errors.Join(failed, n.named())
	if failed != nil {
		return removed, fmt.Errorf("%w: remove %s from it, then %s", failed, Name, n.target())
	}
	err = os.Remove(n.target())
	if errors.Is(err, fs.ErrNotExist) {
		return removed, nil
	}
	return removed || err == nil, err
}

// named returns an error that names a file of the folder of lists, whatever kind it is, that has the plugin's name.
func (n *Node) named() error {
	all, err := os.ReadDir(n.ConfDir)
	for _, e := range all {
		path := filepath.Join(n.ConfDir, e.Name())
		if is, err := os.Stat(path); err != nil || !is.Mode().IsRegular() || is.Size() > maxConf {
			continue // no list
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(Name)) {
			return fmt.Errorf("%s names the plugin, and may become a list again", path)
		}
	}
	return err
}

// Check returns why the plugin is not in its place; nil if it is. It changes nothing.
func (n *Node) Check() error {
	want, err := os.Stat(n.Program)
	if err != nil {
		return err
	}
	is, err := os.Lstat(n.target())
	if err != nil {
		return fmt.Errorf("the plugin's program: %w", err)
	}
	if is.Mode() != 0o755 || is.Size() != want.Size() {
		return fmt.Errorf("%s is not the program of this version", n.target())
	}
	path, err := n.list()
	if err != nil {
		return err
	}
	text, err := readConf(path)
	if err != nil {
		return err
	}
	wanted, err := n.complete(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !bytes.Equal(text, wanted) {
		return fmt.Errorf("%s lacks the plugin", path)
	}
	return nil
}

// edit changes a file of configuration. It fails if another writer changes the file at the same time; the next call then
// starts from what that one wrote.
func edit(path string, change func([]byte) ([]byte, error)) (changed bool, err error) {
	text, err := readConf(path)
	if err != nil {
		return false, err
	}
	to, err := change(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(text, to) {
		return false, nil
	}
	is, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	if again, err := readConf(path); err != nil || !bytes.Equal(again, text) {
		return false, errors.Join(fmt.Errorf("%s changes at this moment", path), err)
	}
	return true, replace(path, bytes.NewReader(to), is.Mode().Perm())
}

// readConf reads a regular file of configuration.
func readConf(path string) ([]byte, error) {
	is, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() || is.Size() > maxConf {
		return nil, fmt.Errorf("%s: want a regular file of at most %d bytes", path, maxConf)
	}
	return os.ReadFile(path)
}

// replace puts a complete file in the place of another.
func replace(path string, content io.Reader, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone if all went well
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path)) // after a power failure, a list must not name a program that is gone
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
