// Programs links what the tests start into .run/programs, as the tests themselves do. A test lists what is there, so when
// it is linked before the go command looks for a result that still holds, a change of any program is seen.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

func main() {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func prepare() error {
	bin, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return err
	}
	return errors.Join(cluster.Build(context.Background(), bin), os.RemoveAll(bin), etcdtest.Prepare())
}
