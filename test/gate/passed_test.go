package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPageIsTestedAgain checks when the tests of the page are passed over: only while each of their inputs is as it was when
// all of them passed at once.
func TestPageIsTestedAgain(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	script, err := os.ReadFile("../tools/passed.sh")
	if err != nil {
		t.Fatal(err)
	}
	c.write("test/tools/passed.sh", string(script))
	c.write(".gitignore", "/.run/\n/programs/\n/outside/\n")
	for _, stub := range []string{"chromium", "node"} {
		c.write("outside/"+stub, "#!/bin/sh\necho "+stub+" 1\n")
	}
	c.write("outside/envoy", "envoy")
	c.write("programs/demo", "demo")
	c.write("web/tests/a.spec.ts", "a")
	c.write("docs/a.md", "a")
	c.write("zone/a.go", "a")
	c.commit(makefile)
	env := append(slices.Clone(c.env), "ENVOY="+filepath.Join(c.dir, "outside", "envoy"), "CHROMIUM="+filepath.Join(c.dir, "outside", "chromium"),
		"PATH="+filepath.Join(c.dir, "outside")+":"+os.Getenv("PATH"))
	// run has the tests print a text and end with a status, and reports whether they ran.
	run := func(prints, status string, more ...string) bool {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.dir, "test", "tools", "passed.sh"), filepath.Join(c.dir, "programs"), "sh", "-c", "echo they ran; printf '"+prints+"'; exit "+status)
		cmd.Dir, cmd.Env = t.TempDir(), append(slices.Clone(env), more...)
		out, _ := cmd.CombinedOutput()
		ran := strings.Contains(string(out), "they ran")
		if want := map[bool]string{true: status, false: "0"}[ran]; want != map[bool]string{true: "0", false: "1"}[cmd.ProcessState.Success()] {
			t.Errorf("status %d, want %s:\n%s", cmd.ProcessState.ExitCode(), want, out)
		}
		if !ran && (!strings.Contains(string(out), "  8 passed") || !strings.Contains(string(out), "cached")) {
			t.Errorf("it does not say how many had passed:\n%s", out)
		}
		return ran
	}
	const passed = "  8 passed (2.0s)\n"
	for _, bad := range []struct{ prints, status string }{{passed, "1"}, {"  1 flaky\n" + passed, "0"}, {"  1 skipped\n" + passed, "0"}, {"", "0"}} {
		if !run(bad.prints, bad.status) {
			t.Fatal("they did not run, though they have not passed")
		}
	}
	if !run(passed, "0") {
		t.Error("after runs that did not pass they did not run")
	}
	for name, change := range map[string]func(){
		"nothing": func() {}, "a document": func() { c.write("docs/a.md", "b") }, "a Go source": func() { c.write("zone/a.go", "b") },
		"a commit": func() { c.write("docs/a.md", "c"); c.commit(makefile) },
	} {
		if change(); run(passed, "0") {
			t.Errorf("after a change of %s they ran", name)
		}
	}
	if !run(passed, "0", "CI_NO_CACHE=1") {
		t.Error("with CI_NO_CACHE=1 they did not run")
	}
	for name, change := range map[string]func(){
		"a program": func() { c.write("programs/demo", "omed") }, "a new program": func() { c.write("programs/more", "") },
		"a test": func() { c.write("web/tests/a.spec.ts", "b") }, "a file that is not committed": func() { c.write("web/tests/b.ts", "") },
		"Envoy": func() { c.write("outside/envoy", "yovne") }, "Chromium": func() { c.write("outside/chromium", "#!/bin/sh\necho chromium 2\n") },
		"Node": func() { c.write("outside/node", "#!/bin/sh\necho node 2\n") }, "a file that is gone": func() { _ = os.Remove(filepath.Join(c.dir, "web", "tests", "a.spec.ts")) },
	} {
		if change(); !run(passed, "0") {
			t.Errorf("after a change of %s they did not run", name)
		}
		if run(passed, "0") {
			t.Errorf("after a change of %s and a run they ran again", name)
		}
	}
	// What changes while they run may not be what ran.
	c.write("web/tests/d.ts", "a")
	if !run("'; echo b >web/tests/d.ts; printf '"+passed, "0") {
		t.Error("after a new file they did not run")
	}
	if c.write("web/tests/d.ts", "a"); !run(passed, "0") {
		t.Error("a file that they changed back is taken for one that passed")
	}
	// Without git, it is unknown what has changed.
	for _, content := range []string{"c", "e"} {
		if c.write("web/tests/d.ts", content); !run(passed, "0", "GIT_DIR="+filepath.Join(c.dir, "outside")) {
			t.Errorf("where git fails, a test that is now %s did not run", content)
		}
	}
}
