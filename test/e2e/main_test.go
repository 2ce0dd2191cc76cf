package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/server/programtest"
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
	programs.demo, err = programtest.Helper(ctx, "demo")
	return err
}
