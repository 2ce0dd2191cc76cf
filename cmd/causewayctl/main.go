// Command causewayctl is how people talk to a global or a zone: apply, look, delete. It holds no knowledge of what a
// resource means: types come from the registry, verdicts from the server's HTTP API.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns the exit status; an interrupt ends a request under way.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &cli{in: os.Stdin, out: os.Stdout, errOut: os.Stderr}
	root := newRoot(c)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return report(c.errOut, cmd.CommandPath(), err)
}
