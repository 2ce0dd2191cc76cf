// Command causewayctl is the command line client of a global or a zone: apply, look, delete. It does not know what a
// resource means: types come from the registry, verdicts from the server's HTTP API.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/causeway-mesh/causeway/printing"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns the exit status. An interrupt cancels a request under way.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// All output passes through these two writers, which escape control characters in text from other authors.
	out, errOut := printing.NewWriter(os.Stdout), printing.NewWriter(os.Stderr)
	defer func() { _ = errors.Join(out.Close(), errOut.Close()) }()
	c := &cli{in: os.Stdin, out: out, errOut: errOut, raw: os.Stdout}
	root := newRoot(c)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = failed(c.said(nil))
	}
	return report(c.errOut, cmd.CommandPath(), err)
}
