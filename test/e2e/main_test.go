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

// programs are the programs under test.
var programs tested

// tested has the paths of programs, which are set once, before the first test. What TestMain looks at is no input of a
// test's result, so each test that asks for a path looks again.
type tested struct{ binPath, envoyPath, demoPath string }

// bin returns the folder of the servers and of causewayctl.
func (p *tested) bin() string {
	programtest.Look(programtest.Release)
	return p.binPath
}

func (p *tested) demo() string {
	programtest.Look("demo")
	return p.demoPath
}

func (p *tested) envoy() string {
	_, _ = os.Stat(p.envoyPath)
	return p.envoyPath
}

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
	if programs.envoyPath, err = cluster.FindEnvoy(""); err != nil {
		return err
	}
	programs.binPath = *binFlag
	if programs.binPath == "" {
		programs.binPath = filepath.Join(dir, "bin")
		if err := cluster.Build(ctx, programs.binPath); err != nil {
			return err
		}
	}
	programs.demoPath, err = programtest.Program(ctx, "demo")
	return err
}
