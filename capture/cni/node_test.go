package cni

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const list = "{\n \"name\": \"pods\", \"cniVersion\": \"1.0.0\",\n \"plugins\": [\n  " + bridge + "\n ]\n}\n"

// newNode makes a node with a list of plugins, and a program to install.
func newNode(t *testing.T) *Node {
	t.Helper()
	dir := t.TempDir()
	n := &Node{Program: filepath.Join(dir, "program"), BinDir: filepath.Join(dir, "bin"), ConfDir: filepath.Join(dir, "conf"), Except: []string{"kube-system"}}
	must(t, errors.Join(os.Mkdir(n.BinDir, 0o755), os.Mkdir(n.ConfDir, 0o755))) //nolint:gosec // as on a node
	write(t, n.Program, "version 1")
	write(t, n.conf("10-pods.conflist"), list)
	write(t, n.conf("00-notes.txt"), "not a list")
	write(t, n.conf("20-other.conflist"), list)
	write(t, filepath.Join(n.BinDir, "bridge"), "another's")
	return n
}

func (n *Node) conf(name string) string { return filepath.Join(n.ConfDir, name) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func is(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s: %v\n%s\nwant\n%s", filepath.Base(path), err, got, want)
	}
}

// versioned is the list with another version.
func versioned(version string) string {
	return strings.Replace(list, `"cniVersion": "1.0.0"`, version, 1)
}

// installed is the list with the plugin.
func installed(t *testing.T) string {
	t.Helper()
	text, err := with([]byte(list), entryFor(t, "kube-system"))
	must(t, err)
	return string(text)
}

// TestInstall installs, again, anew, and uninstalls: what belongs to others stays, to the byte.
func TestInstall(t *testing.T) {
	n := newNode(t)
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "the plugin's program") {
		t.Errorf("before: %v", err)
	}
	step := func(what string, want bool) {
		t.Helper()
		if changed, err := n.Install(); err != nil || changed != want {
			t.Errorf("%s: %v, %v", what, changed, err)
		}
		is(t, n.conf("10-pods.conflist"), installed(t))
		is(t, n.conf("20-other.conflist"), list)
		if err := n.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	step("at first", true)
	is(t, n.target(), "version 1")
	step("once more", false)
	if info, err := os.Stat(n.target()); err != nil || info.Mode() != 0o755 {
		t.Errorf("the program is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(n.conf("10-pods.conflist")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the list is %v, %v", info.Mode(), err)
	}

	write(t, n.conf("10-pods.conflist"), list)
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "lacks the plugin") {
		t.Errorf("written anew: %v", err)
	}
	step("written anew", true)
	must(t, os.Remove(n.target()))
	step("the program is gone", true)
	write(t, n.target(), "version X")
	step("another program", true)
	must(t, os.Chmod(n.target(), 0o600))
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "is not the program of this version") {
		t.Errorf("not executable: %v", err)
	}
	step("not executable", true)
	write(t, n.Program, "version 2, longer")
	another := *n
	another.known = nil // another process, of another version
	if err := another.Check(); err == nil {
		t.Error("the program of another version is in its place")
	}
	if changed, err := another.Install(); err != nil || !changed {
		t.Errorf("another version: %v, %v", changed, err)
	}
	is(t, n.target(), "version 2, longer")

	for _, want := range []bool{true, false} {
		if removed, err := n.Uninstall(); err != nil || removed != want {
			t.Errorf("uninstalled: %v, %v", removed, err)
		}
		is(t, n.conf("10-pods.conflist"), list)
		if _, err := os.Stat(n.target()); err == nil {
			t.Error("the program is left")
		}
	}
	is(t, filepath.Join(n.BinDir, "bridge"), "another's")
	for _, dir := range []string{n.BinDir, n.ConfDir} {
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// TestInstallRefuses: where it cannot be installed, it says why, and changes no list.
func TestInstallRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrange func(n *Node)
		want    string
	}{
		{"no list yet", func(n *Node) {
			must(t, errors.Join(os.Remove(n.conf("10-pods.conflist")), os.Remove(n.conf("20-other.conflist"))))
		}, "no list of plugins in "},
		{"one plugin", func(n *Node) { write(t, n.conf("05-a.conf"), bridge) }, "05-a.conf, which has room for one plugin only"},
		{"another list is named", func(n *Node) { n.ConfFile = "30-absent.conflist" }, "no such file"},
		{"no JSON", func(n *Node) { write(t, n.conf("10-pods.conflist"), "{") }, "10-pods.conflist: "},
		{"a link", func(n *Node) { must(t, os.Symlink(n.conf("20-other.conflist"), n.conf("05-a.conflist"))) }, "want a regular file"},
		{"too big", func(n *Node) { write(t, n.conf("10-pods.conflist"), list+strings.Repeat(" ", maxConf)) }, "at most"},
		{"no version", func(n *Node) { write(t, n.conf("10-pods.conflist"), versioned(`"x": 1`)) }, `cniVersion "": causeway-cni speaks 0.3.0`},
		{"an old version", func(n *Node) { write(t, n.conf("10-pods.conflist"), versioned(`"cniVersion": "0.2.0"`)) }, `cniVersion "0.2.0"`},
		{"a new version", func(n *Node) { write(t, n.conf("10-pods.conflist"), versioned(`"cniVersion": "1.2.0"`)) }, `cniVersion "1.2.0"`},
		{"one of new versions", func(n *Node) {
			write(t, n.conf("10-pods.conflist"), versioned(`"cniVersion": "1.0.0", "cniVersions": ["0.1.0", "1.1.0", "2.0.0"]`))
		}, `cniVersions has "2.0.0"`},
		{"a version that is none", func(n *Node) { write(t, n.conf("10-pods.conflist"), versioned(`"cniVersion": 1`)) }, "cniVersion: "},
		{"no folder of plugins", func(n *Node) { must(t, os.RemoveAll(n.BinDir)) }, "the plugin's program: "},
	} {
		n := newNode(t)
		c.arrange(n)
		before, _ := os.ReadFile(n.conf("10-pods.conflist"))
		if _, err := n.Install(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err := n.Check(); err == nil {
			t.Errorf("%s: it is in its place", c.name)
		}
		after, _ := os.ReadFile(n.conf("10-pods.conflist"))
		if string(before) != string(after) {
			t.Errorf("%s: the list has changed: %s", c.name, after)
		}
	}
	n := newNode(t)
	n.ConfFile = "20-other.conflist"
	if _, err := n.Install(); err != nil {
		t.Fatal(err)
	}
	is(t, n.conf("10-pods.conflist"), list)
	is(t, n.conf("20-other.conflist"), installed(t))
}

// TestUninstallKeepsTheProgram: a container runtime that does not find the program of a list starts no pods. While a list
// may have the entry, the program stays.
func TestUninstallKeepsTheProgram(t *testing.T) {
	n := newNode(t)
	if _, err := n.Install(); err != nil {
		t.Fatal(err)
	}
	write(t, n.conf("20-other.conflist"), `{"plugins": [{"type": "causeway-cni"}`)
	if _, err := n.Uninstall(); err == nil || !strings.Contains(err.Error(), "20-other.conflist") || !strings.Contains(err.Error(), "remove causeway-cni") {
		t.Errorf("it says %v", err)
	}
	is(t, n.target(), "version 1")
	is(t, n.conf("10-pods.conflist"), list)
	write(t, n.conf("20-other.conflist"), "not a list, and not ours")
	must(t, os.Symlink("nowhere", n.conf("30-link.conflist")))
	write(t, n.conf("10-pods.conflist.other_bak"), installed(t)) // another network's installer puts lists aside, and back
	if _, err := n.Uninstall(); err == nil || !strings.Contains(err.Error(), "10-pods.conflist.other_bak names the plugin") {
		t.Errorf("beside a list that was put aside: %v", err)
	}
	is(t, n.target(), "version 1")
	must(t, os.Remove(n.conf("10-pods.conflist.other_bak")))
	if removed, err := n.Uninstall(); err != nil || !removed {
		t.Errorf("then: %v, %v", removed, err)
	}
}

// TestKilled: what a process leaves that is killed while it writes is removed by the next one, or at the end.
func TestKilled(t *testing.T) {
	n := newNode(t)
	half := func() {
		write(t, filepath.Join(n.BinDir, newPrefix+"1"), "half of a program")
		write(t, n.conf(newPrefix+"2"), "{")
	}
	gone := func(when string) {
		t.Helper()
		for _, dir := range []string{n.BinDir, n.ConfDir} {
			if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
				t.Errorf("%s: %v is left, %v", when, left, err)
			}
		}
	}
	half()
	if _, err := n.Install(); err != nil {
		t.Fatal(err)
	}
	gone("installed")
	half()
	if _, err := n.Uninstall(); err != nil {
		t.Fatal(err)
	}
	gone("uninstalled")
}

// TestKeep: whoever writes a list anew, or one that counts before it, or removes the program, the plugin comes back.
func TestKeep(t *testing.T) {
	n := newNode(t)
	must(t, os.Remove(n.conf("20-other.conflist")))
	must(t, os.Rename(n.conf("10-pods.conflist"), n.conf("10-pods.txt")))
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan error, 100), make(chan error)
	go func() { ended <- n.Keep(ctx, func(_ bool, err error) { told <- err }) }()
	if err := <-told; !errors.Is(err, ErrNoList) {
		t.Fatalf("without a list: %v", err)
	}
	removed := func() { must(t, os.Remove(n.target())) }
	other := Node{Program: n.Program, BinDir: n.BinDir, ConfDir: n.ConfDir, Except: n.Except} // as the command status
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"the network is set up", func() { must(t, os.Rename(n.conf("10-pods.txt"), n.conf("10-pods.conflist"))) }},
		{"written anew", func() { write(t, n.conf("10-pods.conflist"), list) }},
		{"replaced", func() { write(t, n.conf("x"), list); must(t, os.Rename(n.conf("x"), n.conf("10-pods.conflist"))) }},
		{"another counts before", func() { write(t, n.conf("05-new.conflist"), list) }},
		{"the program is replaced", func() { write(t, n.target(), "broken"); must(t, os.Chmod(n.target(), 0o600)) }},
		{"the program is removed", removed}, {"and again", removed}, {"and again", removed}, {"and again", removed},
	} {
		c.change()
		deadline := time.After(recheckTime / 2) // it is told, and does not wait until it looks by itself
		for other.Check() != nil {
			select {
			case err := <-told:
				t.Logf("%s: %v", c.what, err)
			case <-time.After(time.Millisecond):
			case <-deadline:
				t.Fatalf("%s: %v", c.what, other.Check())
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	n.ConfDir = n.conf("absent")
	if err := n.Keep(t.Context(), func(bool, error) {}); err == nil {
		t.Error("it watches a folder that is not there")
	}
}
