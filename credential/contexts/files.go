package contexts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/causeway-mesh/causeway/credential"
)

// Env names the files of contexts, separated as in PATH.
const Env = "CAUSEWAY_CONTEXTS"

// Files are the active files of contexts. As with KUBECONFIG, the first file that has a context or a current context
// wins.
type Files struct{ files []*File }

// ReadFiles reads the file of a flag, or else those of Env, or else the default: causeway/config.yaml in the user's
// configuration folder. A file that does not exist is empty. An Env that is set but empty is an error.
func ReadFiles(flag string) (*Files, error) {
	paths, err := pathsOf(flag)
	if err != nil {
		return nil, err
	}
	out := &Files{}
	for _, path := range paths {
		f, err := Read(path)
		if err != nil {
			return nil, err
		}
		out.files = append(out.files, f)
	}
	return out, nil
}

// pathsOf returns the paths of the files of a flag, or else of Env, or else of the default; none for a user without a home.
func pathsOf(flag string) ([]string, error) {
	if flag != "" {
		return []string{flag}, nil
	}
	named, there := os.LookupEnv(Env)
	if there && strings.TrimSpace(named) == "" {
		return nil, fmt.Errorf("the variable %s is set and empty: give it a value, or unset it", Env)
	}
	paths := slices.DeleteFunc(filepath.SplitList(named), func(path string) bool { return path == "" })
	if there {
		return paths, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home has no contexts
	}
	return []string{filepath.Join(folder, "causeway", "config.yaml")}, nil
}

// Hold keeps others from changing the files of a flag, as ReadFiles has them, until release is called: who changes them
// reads them after this, or what another one wrote meanwhile is lost. It waits for who has them now, until ctx ends. Files
// that cannot be changed are not held.
func Hold(ctx context.Context, flag string) (release func(), err error) {
	paths, err := pathsOf(flag)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 {
		_ = os.MkdirAll(filepath.Dir(New(paths[0]).target()), 0o700) // new contexts go there; Save says what is wrong
	}
	var locks []string
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute // a file that has two names is held once
		}
		folder, name := filepath.Split(New(path).target())
		locks = append(locks, filepath.Join(folder, "."+name+".lock"))
	}
	slices.Sort(locks) // in one order, whatever that of the files
	var held []func()
	release = func() {
		for _, one := range held {
			one()
		}
	}
	for _, path := range slices.Compact(locks) {
		one, err := credential.Hold(ctx, path, "changes contexts")
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			continue
		case err != nil:
			release()
			return nil, err
		}
		held = append(held, one)
	}
	return release, nil
}

// Current returns the name of the current context, or "".
func (f *Files) Current() string {
	for _, one := range f.files {
		if one.CurrentContext != "" {
			return one.CurrentContext
		}
	}
	return ""
}

// Find returns the named context, with absolute paths. Its error lists the existing contexts.
func (f *Files) Find(name string) (*Context, error) {
	for _, one := range f.files {
		if c := one.Find(name); c != nil {
			return c, nil
		}
	}
	return nil, &UnknownError{Name: name, Known: f.Names(), Paths: f.Paths()}
}

// UnknownError reports that no file has the named context.
type UnknownError struct {
	Name         string
	Known, Paths []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no context %q: %s has none; causewayctl config set-context adds one", e.Name, cmp.Or(strings.Join(e.Paths, ", "), "no file"))
	}
	return fmt.Sprintf("there is no context %q: there are %s", e.Name, strings.Join(e.Known, ", "))
}

// Names returns the names of all contexts, in the order of the files, without duplicates.
func (f *Files) Names() []string {
	var names []string
	for _, c := range f.All() {
		names = append(names, c.Name)
	}
	return names
}

// All returns the active contexts, in the order of the files, with absolute paths.
func (f *Files) All() []*Context {
	var all []*Context
	seen := map[string]bool{}
	for _, one := range f.files {
		for i := range one.Contexts {
			if name := one.Contexts[i].Name; !seen[name] {
				seen[name] = true
				all = append(all, one.Find(name))
			}
		}
	}
	return all
}

// Paths returns the paths of the files.
func (f *Files) Paths() []string {
	var paths []string
	for _, one := range f.files {
		paths = append(paths, one.path)
	}
	return paths
}

// Holding returns the file with the named context, or else the first, for new contexts; nil if there are no files.
func (f *Files) Holding(name string) *File {
	for _, one := range f.files {
		if one.Find(name) != nil {
			return one
		}
	}
	return f.First()
}

// First returns the file whose current context overrides those of the others, or nil.
func (f *Files) First() *File {
	if len(f.files) == 0 {
		return nil
	}
	return f.files[0]
}
