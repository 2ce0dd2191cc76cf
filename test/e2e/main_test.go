package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// programs are the programs under test. They are set once, before the first test.
var programs struct{ bin, envoy, demo string }

var binFlag = flag.String("bin", "", "folder of causeway-global, causeway-zone and causewayctl; built when empty")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "causeway-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = prepare(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return cluster.Leaks(m.Run())
}

// prepare builds the programs once. It fails without an Envoy, because nothing could be tested.
func prepare(ctx context.Context, dir string) error {
	var err error
	if programs.envoy, err = cluster.FindEnvoy(""); err != nil {
		return err
	}
	programs.bin = *binFlag
	if programs.bin == "" {
		programs.bin = filepath.Join(dir, "bin")
		if err := cluster.Build(ctx, programs.bin); err != nil {
			return err
		}
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	programs.demo = filepath.Join(dir, "demo")
	build := exec.CommandContext(ctx, "go", "build", "-o", programs.demo, "./test/demo")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the demo: %w\n%s", err, out)
	}
	return nil
}
