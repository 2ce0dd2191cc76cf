package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var olderCommits = flag.String("older", "",
	"the commits, separated by commas, whose programs TestFaultsVersions changes to and from; empty for those of now, which only start anew")

// versions is a mesh whose servers change their programs during writes.
type versions struct {
	*crash
	older string
}

// TestFaultsVersions switches the global and its zones to other programs, older and newer, one after another and back,
// during writes on both sides. With any combination, acknowledged writes are on both sides, and the Envoy's listeners
// change only where the newer program adds something. A program that cannot read a newer one's data, or does not know a type in it
// (TestFaultsTypeOfANewerProgram), does not start, reports it, and changes nothing.
func TestFaultsVersions(t *testing.T) {
	t.Parallel()
	commits := strings.FieldsFunc(*olderCommits, func(r rune) bool { return r == ',' })
	if len(commits) == 0 {
		switchVersions(t, programs.bin())
		return
	}
	for _, commit := range commits {
		t.Run(commit, func(t *testing.T) { switchVersions(t, buildOlder(t, commit)) })
	}
}

func switchVersions(t *testing.T, older string) {
	m := newClusterOf(t, older)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{})
	m.must(err)
	for _, name := range []string{"zone-1", "zone-2"} {
		m.startZone(name)
	}
	v := &versions{crash: crashOf(m), older: older}
	for _, step := range []struct {
		what   string
		server *cluster.Server
		bin    string
	}{
		{"the global is newer", v.global, programs.bin()},
		{"zone-1 is newer too", v.zone1, programs.bin()},
		{"the global is older again", v.global, older},
		{"zone-1 is older again", v.zone1, older},
		{"zone-1 alone is newer", v.zone1, programs.bin()},
		{"the global is newer for good", v.global, programs.bin()},
		{"zone-2 is newer", v.zone2, programs.bin()},
	} {
		v.change(step.what, step.server, step.bin)
	}
	v.bystander()
	v.noProblems(v.global.API.URL())
	if v.ofGlobal.written < 20 || v.ofZone.written < 20 {
		t.Errorf("too few writes to call this a test: %d on the global and %d in the zone", v.ofGlobal.written,
			v.ofZone.written)
	}
}

// change stops a server during writes, starts it with the programs of a folder, and compares both sides.
func (v *versions) change(what string, s *cluster.Server, bin string) {
	v.t.Helper()
	writing, stop := context.WithTimeout(v.t.Context(), 400*time.Millisecond)
	defer stop()
	var g errgroup.Group
	for _, l := range []*ledger{v.ofGlobal, v.ofZone} {
		rng := rand.New(rand.NewPCG(v.rng.Uint64(), 0))
		g.Go(func() error { return l.insist(writing, rng) })
	}
	during(v.t.Context(), 200*time.Millisecond)
	v.must(s.Stop(v.t.Context()))
	s.SetPrograms(bin)
	logged := len(s.Log())
	if err := s.Start(v.t.Context()); err != nil {
		said := s.Log()[logged:]
		if bin != v.older || !strings.Contains(said, "format") && !strings.Contains(said, "unknown resource type") {
			v.t.Fatalf("%s: %v:\n%s", what, err, said)
		}
		v.t.Logf("%s: it does not start: %s", what,
			strings.TrimSpace(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]))
		s.SetPrograms(programs.bin())
		v.must(s.Start(v.t.Context()))
	}
	stop()
	v.must(g.Wait())
	v.must(v.ofGlobal.check(v.t.Context()))
	v.must(v.ofZone.check(v.t.Context()))
	v.agree()
	v.frontend.Close()
	v.becomes(v.frontend, "http-port", true, ownerKRI)
	v.t.Logf("%s: both sides agree", what)
}

// buildOlder builds the programs of a commit.
func buildOlder(t *testing.T, commit string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, bin := filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "bin")
	for _, args := range [][]string{
		{"git", "clone", "-q", "--no-checkout", root, source},
		{"git", "-C", source, "checkout", "-q", commit},
		{"go", "-C", source, "build", "-o", bin + "/", "./cmd/..."},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return bin
}
