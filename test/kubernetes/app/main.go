// Command app is what runs in pods of tests: a server that the kubelet probes and that others call, and a client that
// calls it. It knows of no mesh.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	commands := map[string]func(context.Context, []string) error{
		"serve": serve, "wait": wait, "set": set, "get": get, "line": line, "lookup": lookup, "load": load,
		"stream": stream, "upload": upload, "socket": socket,
	}
	run := commands["serve"]
	var args []string
	if len(os.Args) > 1 {
		run, args = commands[os.Args[1]], os.Args[2:]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "app: unknown command", os.Args[1])
		os.Exit(2)
	}
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

// wait does nothing, until it is told to end.
func wait(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return nil
}
