package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// walkthrough is the section of the README whose commands TestREADME runs.
const walkthrough = "## A first policy, step by step"

// readmePorts are the ports in the section. The test replaces each with a free one.
var readmePorts = []string{"25681", "25680", "25678", "15681", "15680", "5681", "5685", "5680", "5678", "9901", "9080", "8080", "8081"}

// TestREADME runs the commands in the README for newcomers, and expects the output that it shows.
func TestREADME(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, root, "first-policy")
	r.onlyListed()
	r.read("README.md", walkthrough)
}

// onlyListed leaves the reader what the README says that one needs: a shell with its usual commands, and Python. make
// and Go have done their work before, and curl is the test's own.
func (r *reader) onlyListed() {
	r.t.Helper()
	r.path = r.t.TempDir()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	r.must(err)
	r.must(os.Symlink(strings.TrimSpace(string(python)), filepath.Join(r.path, "python3")))
	for _, name := range []string{"bash", "cat", "cp", "ls", "mkdir", "rm", "sh", "sleep"} {
		program, err := exec.LookPath(name)
		r.must(err)
		r.must(os.Symlink(program, filepath.Join(r.path, name)))
	}
}

// TestInstallOnOneMachine runs the commands of docs/install/one-machine.md: settings in files, doctor, a backup, a
// restart, a support bundle.
func TestInstallOnOneMachine(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	newReader(t, root, "first-policy").read("docs/install/one-machine.md", "")
}

// TestProxylessGRPCGuide runs the commands of docs/proxyless-grpc: a grpc-go server that gets permissions from a zone.
func TestProxylessGRPCGuide(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	newReader(t, root, "proxyless-grpc").read("docs/proxyless-grpc/README.md", "## Step by step")
}

// TestDisasterGuide runs the commands of docs/operations/disaster-recovery.md: a global that has lost its store, with
// and without a backup.
func TestDisasterGuide(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	newReader(t, root, "operations").read("docs/operations/disaster-recovery.md", "## Step by step")
}

// read runs the commands of a section of a page.
func (r *reader) read(page, section string) {
	r.t.Helper()
	commands, err := pages.Read(r.root, page, section)
	r.must(err)
	if len(commands) < 10 {
		r.t.Fatalf("the section shows only %d commands", len(commands))
	}
	for _, c := range commands {
		r.follow(c)
	}
}
