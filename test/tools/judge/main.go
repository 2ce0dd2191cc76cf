// Judge validates manifests against the types of their consumers, and reports what the consumers would reject. It is a
// separate module, because these types have many dependencies that the product does not need.
//
//	judge kubernetes < MANIFESTS   objects of Kubernetes and of the Prometheus operator: a field that is unknown, twice, or of another type
//	judge compose FILE             a Compose file: the schema, and whether what services refer to is there
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "kubernetes":
		n, err := kubernetes(os.Stdin)
		fmt.Println(n, "objects")
		return err
	case len(args) == 2 && args[0] == "compose":
		n, err := compose(args[1])
		fmt.Println(n, "services")
		return err
	}
	return fmt.Errorf("want `kubernetes` or `compose FILE`, got %q", args)
}

// compose loads a file as docker compose config does.
func compose(file string) (services int, err error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithInterpolation(true), cli.WithConsistency(true))
	if err != nil {
		return 0, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return 0, err
	}
	return len(project.Services), nil
}

// limit is the largest accepted input, in bytes.
const limit = 16 << 20

func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return raw, err
}
