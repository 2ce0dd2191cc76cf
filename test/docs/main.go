package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// folder is the folder of the pages, relative to the root of the repository.
const folder = "docs/reference"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := write(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	all, err := pages(ctx, root)
	if err != nil {
		return err
	}
	for name, text := range all {
		path := filepath.Join(root, folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // pages are for everybody
			return err
		}
	}
	schemas, err := schemasOfPage(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, schemasFile), []byte(schemas), 0o644) //nolint:gosec // for everybody
}

// pages returns all pages of the reference, by file name.
func pages(ctx context.Context, root string) (map[string]string, error) {
	bin, err := os.MkdirTemp("", "causeway-docs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	if err := cluster.Build(ctx, bin); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, program := range []string{"causeway-global", "causeway-zone", "causewayctl"} {
		if out[program+".md"], err = programPage(ctx, bin, program); err != nil {
			return nil, err
		}
	}
	if out["policies.md"], err = policiesPage(root); err != nil {
		return nil, err
	}
	if out["metrics.md"], err = metricsPage(root); err != nil {
		return nil, err
	}
	if out["types.md"], err = typesPage(root); err != nil {
		return nil, err
	}
	if out["api.md"], err = apiPage(); err != nil {
		return nil, err
	}
	return out, nil
}

// written follows the title of each page.
const written = "This page is written by `make docs` from the code: change the code, not the page.\n"
