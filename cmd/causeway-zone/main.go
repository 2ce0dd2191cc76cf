// Command causeway-zone is the server of one zone: it accepts policy from the global and from its own users, and serves
// the zone's proxies.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/capture/cni"
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/server"
)

func main() {
	if filepath.Base(os.Args[0]) == cni.Name { // a container runtime makes the network of a pod
		os.Exit(cni.Main(os.Stdout))
	}
	os.Exit(settings.Execute(newRoot(), os.Stderr))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "causeway-zone",
		Short: "The server of one zone of a Causeway mesh",
		Args:  cobra.NoArgs,
	}
	root.AddCommand(newRun(), newJoin(), newBootstrap(), newCapture(), newCNI(), settings.NewHealthcheck("causeway-zone", newRun()),
		settings.NewMan("causeway-zone"), settings.NewReference("causeway-zone"), &cobra.Command{
			Use: "version", Short: "Print the version", Args: cobra.NoArgs,
			Run: func(cmd *cobra.Command, _ []string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), server.Version()) },
		})
	return root
}
