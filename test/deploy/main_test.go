package deploy

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// patience bounds the wait for any background event.
const patience = 60 * time.Second

// built is the folder of the programs under test, and root is the repository. They are set once, before the first test.
var built, root string

// programs returns the folder of the programs under test. What TestMain looks at is no input of a test's result, so each
// test looks again.
func programs() string {
	programtest.Look(programtest.Release)
	return built
}

var binFlag = flag.String("bin", "", "folder of causeway-global, causeway-zone and causewayctl; built when empty")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "causeway-deploy-")
	if err == nil {
		defer os.RemoveAll(dir)
		root, err = cluster.Root()
	}
	if err == nil {
		if built = *binFlag; built == "" {
			built = filepath.Join(dir, "bin")
			err = cluster.Build(context.Background(), built)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		return 1
	}
	return cluster.Leaks(m.Run())
}

// lookAt looks at each file of a folder. Commands of pages read them in processes of their own, of which the go command
// learns nothing when it decides whether the result of these tests still holds.
func lookAt(folder string) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
}

// newCluster returns the cluster of one test. On a failure it shows the ends of the logs.
func newCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(cluster.Config{Bin: programs(), Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			var logs strings.Builder
			c.Tails(&logs, 15)
			t.Logf("the ends of the logs:\n%s", logs.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	must(t, err)
	return string(raw)
}

// output runs a program to its end, and expects it to succeed.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

var flagName = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)

// flagsOf returns the flags of a program's command, according to its help.
func flagsOf(t *testing.T, program string, command ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range flagName.FindAllStringSubmatch(output(t, filepath.Join(programs(), program),
		append(command, "--help")...), -1) {
		all[m[1]] = true
	}
	if len(all) < 2 {
		t.Fatalf("%s %s: no flags in its help", program, command)
	}
	return all
}
