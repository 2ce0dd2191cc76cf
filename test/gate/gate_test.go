// Package gate tests .ci/run: what it judges, and that it fails when something fails.
package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// makefile has the targets that .ci/run makes. Its packages fail if a file is there that an earlier commit made.
const makefile = `
programs test-servers lint docs-site test-page test-deploy test-abuse test-sources test-cluster test-apiserver:
tools:
	mkdir -p .tools/kubernetes && touch .tools/kubernetes/kube-apiserver
build:
	mkdir -p bin && touch bin/kept made-$(shell git rev-parse HEAD)
test-packages:
	@test -z "$(PKG)$(ARGS)"
	@test "$$(ls made-* | wc -l)" = 1 && echo "DONE 7 tests in 1s"
test-browser:
	@printf '  1) a.spec.ts:1:1 > one\n\n    Error: it is red\n\n  1 flaky\n    a.spec.ts:1:1 > one\n  8 passed (2.0s)\n'
`

// checkout is a clean one, of a repository with one commit.
type checkout struct {
	t     *testing.T
	dir   string
	place string // where the gate may stay
	env   []string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	c := &checkout{t: t, dir: filepath.Join(t.TempDir(), "here"), place: filepath.Join(t.TempDir(), "place")}
	outside := func(v string) bool { // of the make that runs this test, and of a hook of git
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") || strings.HasPrefix(v, "GIT_")
	}
	c.env = append(slices.DeleteFunc(os.Environ(), outside), "GATE="+c.place, "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example")
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	c.write(".ci/run", string(script))
	c.write(".gitignore", "/bin/\n/made-*\n/.tools/\n")
	c.git("init", "--quiet", "--initial-branch", "work")
	c.commit(makefile)
	return c
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one is a program
		c.t.Fatal(err)
	}
}

func (c *checkout) commit(makefile string) {
	c.t.Helper()
	c.write("Makefile", makefile)
	c.git("add", ".")
	c.git("commit", "--quiet", "--message", "one")
}

func (c *checkout) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// gate runs it, checks its status and what it prints, and returns that.
func (c *checkout) gate(status int, says ...string) string {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.dir, ".ci", "run"))
	cmd.Dir, cmd.Env = c.t.TempDir(), c.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != status {
		c.t.Errorf("status %d, %v, want %d:\n%s", cmd.ProcessState.ExitCode(), err, status, out)
	}
	for _, want := range says {
		if !strings.Contains(string(out), want) {
			c.t.Errorf("the gate does not say %q:\n%s", want, out)
		}
	}
	return string(out)
}

func (c *checkout) there() string { return "== in " + filepath.Join(c.place, "causeway") + ", at " }
func (c *checkout) here() string  { return "== in " + c.dir + ", where no earlier result is found" }

// TestGateStays checks that a gate judges the commit in its place, where nothing but what recipes remake is left of
// earlier ones, also after one that was killed while git wrote there.
func TestGateStays(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.gate(0, c.there(), "passed in", "DONE 7 tests", "Error: it is red", "  1 flaky", "  8 passed")
	kept := filepath.Join(c.place, "causeway", "bin", "kept")
	before, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	c.commit(makefile + "# another\n")
	for _, lock := range []string{"index.lock", "shallow.lock"} {
		if err := os.WriteFile(filepath.Join(c.place, "causeway", ".git", lock), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.gate(0, c.there()+c.git("rev-parse", "--short", "HEAD"))
	if after, err := os.Stat(kept); err != nil || !os.SameFile(before, after) {
		t.Errorf("bin was not kept: %v", err)
	}
}

// TestGateFails checks that a stage that fails, and a step that does, fail the gate, that the other stages end, and that
// results end with those of what failed.
func TestGateFails(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.gate(0)
	stages := []string{"test-servers", "test-browser", "test-packages", "docs-site", "test-deploy", "test-abuse", "test-sources", "test-cluster", "test-apiserver"}
	for _, stage := range stages {
		c.commit(strings.Replace(makefile, stage, "others", 1) + stage + ":\n\tfalse\n")
		if stage == "docs-site" {
			stage = "lint"
		}
		out := c.gate(1, "failed: "+stage, "test-abuse ended with")
		if _, last, _ := strings.Cut(out, "\n== results\n"); !strings.HasPrefix(last[strings.LastIndex(last, "\n-- ")+1:], "-- "+stage+"\n") {
			t.Errorf("what failed is not the last of the results:\n%s", last)
		}
	}
	none := newCheckout(t)
	none.commit(strings.Replace(makefile, "/kube-apiserver", "/another", 1) + "test-cluster test-apiserver:\n\tfalse\n")
	none.gate(0, "NOT RUN: test-cluster", "NOT RUN: test-apiserver", "passed in")
	c.commit(strings.Replace(makefile, "build:", "build:\n\tfalse", 1))
	c.gate(2, "no test ran", "stopped with exit status 2")
}

// TestGateOfAnEnvironment checks that variables that make reads narrow nothing, and that an error stays one.
func TestGateOfAnEnvironment(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.env = append(c.env, "PKG=./none", "ARGS=-run=none", "MAKEFLAGS=i")
	c.gate(0)
	c.commit(strings.Replace(makefile, "test-abuse", "others", 1) + "test-abuse:\n\tfalse\n")
	c.gate(1, "failed: test-abuse")
}

// TestGateWhereItIs checks when a gate runs in the checkout itself: with changes, beside another gate, without a home.
func TestGateWhereItIs(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.gate(0, c.there())
	lock, err := os.OpenFile(filepath.Join(c.place, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	c.gate(0, c.here())
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	whole := c.env
	c.env = slices.Clone(whole)
	for i, v := range c.env {
		if strings.HasPrefix(v, "GATE=") || strings.HasPrefix(v, "XDG_CACHE_HOME=") || strings.HasPrefix(v, "HOME=") {
			c.env[i] = "NONE="
		}
	}
	c.gate(0, c.here())
	c.env = whole
	c.write("Makefile", makefile+"# not committed\n")
	c.gate(0, c.here())
}

// TestGateOfAHook checks that a gate that a hook of git starts changes nothing in the hook's repository.
func TestGateOfAHook(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	before := c.git("status", "--branch", "--porcelain")
	whole := c.env
	of := filepath.Join(c.dir, ".git")
	c.env = append(slices.Clone(whole), "GIT_DIR="+of, "GIT_INDEX_FILE="+filepath.Join(of, "index"))
	c.gate(0, c.there())
	c.env = whole
	if after := c.git("status", "--branch", "--porcelain"); after != before {
		t.Errorf("after the gate the checkout is at %q, before at %q", after, before)
	}
	if head := c.git("symbolic-ref", "HEAD"); head != "refs/heads/work" {
		t.Errorf("HEAD is %s", head)
	}
}
