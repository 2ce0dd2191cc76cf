package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

func newMigrateStore(c *cli) *cobra.Command {
	f := restoreFlags{}
	to := ""
	cmd := &cobra.Command{
		Use:   "migrate-store --to etcd|bolt --data-dir FOLDER --etcd-endpoints URLS",
		Short: "Copy a server's store from its file into etcd, or back, while the server is stopped",
		Long: "Copy a server's store from its file into etcd, or back, while the server is stopped. Revisions do\n" +
			"not change. The source remains as it is: remove it once the server runs on the other store.",
		Example: "  causewayctl migrate-store --to etcd --data-dir /var/lib/causeway --etcd-endpoints http://127.0.0.1:2379 --etcd-prefix /causeway/global",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to != backend.Etcd && to != backend.Bolt {
				return usagef("--to is %q: want %s or %s", to, backend.Etcd, backend.Bolt)
			}
			return failed(c.migrateStore(cmd.Context(), to, &f))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "the `kind` of store to copy to, bolt or etcd; the source is the other one (required)")
	flags.StringVar(&f.dataDir, "data-dir", "", "the server's data `folder` (required)")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace an existing store")
	settings.AddStoreFlags(flags, &f.store, "/causeway/global")
	_ = flags.MarkHidden("store")
	_ = cmd.MarkFlagRequired("to")
	_ = cmd.MarkFlagRequired("data-dir")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{backend.Etcd, backend.Bolt},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) migrateStore(ctx context.Context, to string, f *restoreFlags) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	file := backend.Config{Kind: backend.Bolt, Path: filepath.Join(f.dataDir, backend.File)}
	shared := f.store
	shared.Kind, shared.Password = backend.Etcd, os.Getenv(backend.PasswordEnv)
	source, target := file, shared
	if to == backend.Bolt {
		source, target = shared, file
	}
	if source.Kind == backend.Bolt {
		if _, err := os.Stat(source.Path); err != nil {
			return fmt.Errorf("there is no store to copy: %w", err)
		}
	}
	from, err := backend.Open(ctx, source)
	if err != nil {
		return err
	}
	now := from.Snapshot()
	all := slices.Collect(store.All(now))
	if err := from.Close(); err != nil {
		return err
	}
	aside, err := backend.Replace(ctx, target, now.Revision(), all, f.overwrite)
	if err != nil {
		return replacing(err)
	}
	if aside != "" {
		_, _ = fmt.Fprintf(c.errOut, "the old store is now %s\n", aside)
	}
	done := migratedItem{Store: to, Revision: now.Revision(), Resources: len(all), Aside: aside}
	return c.printAnswer(done, func() error {
		_, err := fmt.Fprintf(c.out, "copied %d resources at revision %d; start the server with --store %s\n",
			done.Resources, done.Revision, to)
		return err
	})
}

// migratedItem is what a migration has copied, for programs.
type migratedItem struct {
	// Store is the new store, as the server's --store names it.
	Store     string `json:"store"`
	Revision  uint64 `json:"revision"`
	Resources int    `json:"resources"`
	// Aside is where what was in its place is now.
	Aside string `json:"aside,omitempty"`
}
