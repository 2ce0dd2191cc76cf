package programtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// linker links programs of the repository root into dir: each set into the folder of its name.
type linker struct {
	root, dir string
	sets      map[string]set
}

func linkerOf(root string) linker {
	return linker{root: root, dir: filepath.Join(root, ".run", "programs"), sets: sets}
}

// made is the folder, beside those of the sets, in which the go command builds. It sets the times of programs there.
const made = ".made"

// LinkForBrowser links the programs of the tests of the page, which has to be built before, and returns their folder.
func LinkForBrowser(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	l := linkerOf(root)
	return filepath.Join(l.dir, Browser), l.link(ctx, Browser)
}

// LinkAll links the programs of all sets but Browser, and removes what is left of sets that are gone.
func LinkAll(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	l := linkerOf(root)
	names := slices.Sorted(maps.Keys(l.sets))
	if err := l.link(ctx, slices.DeleteFunc(names, func(name string) bool { return name == Browser })...); err != nil {
		return err
	}
	there, err := os.ReadDir(l.dir)
	for _, e := range there {
		if _, known := l.sets[e.Name()]; !known && e.Name() != made {
			err = errors.Join(err, os.RemoveAll(filepath.Join(l.dir, e.Name())))
		}
	}
	return err
}

// link links sets, statically like a release. A program is replaced only by one with another content. It keeps its time
// until then: the go command compares the time when it decides whether the result of a test that used the program still
// holds.
func (l linker) link(ctx context.Context, names ...string) error {
	type build struct{ module, tags string }
	builds := map[build][]string{}
	for _, name := range names {
		s := l.sets[name]
		builds[build{s.module, s.tags}] = append(builds[build{s.module, s.tags}], name)
	}
	if err := os.MkdirAll(filepath.Join(l.dir, made), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(l.dir, made, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	for b, names := range builds {
		if err := l.linkTogether(ctx, b.module, b.tags, names); err != nil {
			return err
		}
	}
	return nil
}

// linkTogether links sets of one module with the same tags by one call of the go command.
func (l linker) linkTogether(ctx context.Context, module, tags string, names []string) error {
	source := filepath.Join(l.root, module)
	if _, err := os.Stat(filepath.Join(source, "go.mod")); module != "" && errors.Is(err, fs.ErrNotExist) {
		var failed error
		for _, name := range names {
			failed = errors.Join(failed, os.RemoveAll(filepath.Join(l.dir, name)))
		}
		return failed
	}
	into := filepath.Join(l.dir, made, path.Base(module)+"-"+strings.ReplaceAll(tags, ",", "-"))
	// Without -buildvcs=false, the commit would be in each program.
	args := []string{"build", "-o", into + string(filepath.Separator), "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-tags=" + tags}
	for _, name := range names {
		args = append(args, l.sets[name].packages...)
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // packages of ours
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	for _, name := range names {
		if err := l.take(name, into); err != nil {
			return err
		}
	}
	return nil
}

// take gives a set's folder what was made of its programs, and removes other files.
func (l linker) take(name, from string) error {
	dir, known := filepath.Join(l.dir, name), map[string]bool{}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, folder := range l.sets[name].packages {
		program := path.Base(folder)
		known[program] = true
		if err := replace(filepath.Join(dir, program), filepath.Join(from, program)); err != nil {
			return err
		}
	}
	there, err := os.ReadDir(dir)
	for _, e := range there {
		if !known[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// replace gives a file the content of another, unless it has that. Tests may have hard links to the file, which keep what
// they have.
func replace(file, by string) error {
	content, err := os.ReadFile(by)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(file)
	if err == nil && bytes.Equal(before, content) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	copied := by + ".new"
	return errors.Join(os.WriteFile(copied, content, 0o700), os.Rename(copied, file)) //nolint:gosec // a program
}
