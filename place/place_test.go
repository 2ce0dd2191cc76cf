package place_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/place"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder creates a data folder in its own directory, and holds it.
func folder(t *testing.T) (*place.Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, "membership"), 0o700))
	write(t, dir, "secrets.key", "the key")
	write(t, dir, "membership/credential", "first")
	f, err := place.HoldFolder(dir)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	must(t, f.Keep("secrets.key"), f.Keep("never-there"))
	f.Need("membership/credential", "never-there")
	return f, dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

// TestFolder changes a folder in many ways, and checks whether it still counts as the held one.
func TestFolder(t *testing.T) {
	for what, c := range map[string]struct {
		do    func(t *testing.T, dir string)
		moved bool
	}{
		"nothing":            {do: func(*testing.T, string) {}},
		"another file in it": {do: func(t *testing.T, dir string) { write(t, dir, "new", "x") }},
		"a credential that was renewed": {do: func(t *testing.T, dir string) {
			write(t, dir, "membership/credential", "second")
		}},
		"a key that was copied back": {do: func(t *testing.T, dir string) { write(t, dir, "secrets.key", "the key") }},
		"moved and moved back": {do: func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".away"), os.Rename(dir+".away", dir))
		}},
		"moved":   {moved: true, do: func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".away")) }},
		"removed": {moved: true, do: func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }},
		"made anew": {moved: true, do: func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir), os.Mkdir(dir, 0o700))
		}},
		"the folder above moved": {moved: true, do: func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+".away"))
		}},
		"a copy in its place": {moved: true, do: func(t *testing.T, dir string) {
			must(t, os.CopyFS(dir+".copy", os.DirFS(dir)), os.Rename(dir, dir+".away"), os.Rename(dir+".copy", dir))
		}},
		"without its key": {moved: true,
			do: func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "secrets.key"))) }},
		"with another key": {moved: true,
			do: func(t *testing.T, dir string) { write(t, dir, "secrets.key", "THE KEY") }},
		"without its membership": {moved: true,
			do: func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "membership"))) }},
	} {
		t.Run(what, func(t *testing.T) {
			f, dir := folder(t)
			c.do(t, dir)
			if err := f.Check(); errors.Is(err, place.ErrMoved) != c.moved || err != nil && !c.moved {
				t.Errorf("got %v; moved: %t", err, c.moved)
			}
		})
	}
}

// TestRelativePath checks that a folder with a relative path is found by its absolute path at the start.
func TestRelativePath(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	must(t, os.MkdirAll(filepath.Join(above, "data"), 0o700))
	t.Chdir(above)
	f, err := place.HoldFolder("data")
	must(t, err)
	defer func() { must(t, f.Close()) }()
	must(t, f.Check(), os.Rename(above, above+".away"))
	if err := f.Check(); !errors.Is(err, place.ErrMoved) {
		t.Errorf("the folder above was moved: %v", err)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// TestRunTells checks that Run logs the loss and the return of the folder once each, without a call of Check.
func TestRunTells(t *testing.T) {
	f, dir := folder(t)
	var log lines
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, slog.New(slog.NewTextHandler(&log, nil))) }()
	for range 2 {
		before, back := log.count("not in its place"), log.count("in its place again")
		must(t, os.Rename(dir, dir+".away"))
		until(t, func() bool { return log.count("not in its place") == before+1 })
		must(t, os.Rename(dir+".away", dir))
		until(t, func() bool { return log.count("in its place again") == back+1 })
	}
	stop()
	must(t, <-done)
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("waited 20 s")
		}
	}
}
