// Command causewayctl is the command line client of a global or a zone: apply, look, delete. It does not know what a
// resource means: types come from the registry, verdicts from the server's HTTP API.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/printing"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run executes one command line and returns the exit status. An interrupt cancels a request in progress.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// All output passes through these two writers, which escape control characters in text from other authors. Colours
	// are added after that.
	colours := newPainter(stdout)
	out, errOut := printing.NewWriter(colours), printing.NewWriter(stderr)
	defer func() { _ = errors.Join(out.Close(), colours.Close(), errOut.Close()) }()
	c := &cli{in: stdin, out: out, errOut: errOut, raw: stdout, painter: colours}
	defer c.kube.close()
	root := newRoot(c)
	settings.Narrow(root)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err = aboutCommandLine(cmd, err)
	if err == nil {
		err = failed(c.said(nil))
	}
	return report(c.errOut, cmd.CommandPath(), err)
}
