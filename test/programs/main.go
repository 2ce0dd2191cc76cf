// Programs links what the tests start into .run/programs, as the tests themselves do. A test lists what is there, so when
// it is linked before the go command looks for a result that still holds, a change of any program is seen. With the argument
// browser it links what the tests of the page start, and prints the folder.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/causeway-mesh/causeway/server/programtest"
)

func main() {
	if err := link(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func link(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return programtest.LinkAll(ctx)
	}
	folder, err := programtest.LinkForBrowser(ctx)
	if err == nil {
		fmt.Println(folder)
	}
	return err
}
