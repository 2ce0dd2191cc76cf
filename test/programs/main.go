// Programs links what the tests start into .run/programs, as the tests themselves do. A test lists what is there, so when
// it is linked before the go command looks for a result that still holds, a change of any program is seen.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/causeway-mesh/causeway/server/programtest"
)

func main() {
	if err := programtest.LinkAll(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
