// Programs links what the tests start into .run/programs, as the tests themselves do. A test lists what is there, so when
// it is linked before the go command looks for a result that still holds, a change of any program is seen.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

func main() {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func prepare(ctx context.Context) error {
	bin, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return err
	}
	err = errors.Join(cluster.Build(ctx, bin), os.RemoveAll(bin))
	for name := range programtest.Helpers {
		_, failed := programtest.Helper(ctx, name)
		err = errors.Join(err, failed)
	}
	return err
}
