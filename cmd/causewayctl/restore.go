package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/fsck"
	"github.com/causeway-mesh/causeway/server"
)

// restoredGap is the distance between the revision of a backup and that of the restored store. After the backup, the
// lost server issued further revisions, which zones and people have seen. None of them may get another meaning.
const restoredGap = 1_000_000

// restoreFlags select the destination of a restore.
type restoreFlags struct {
	dataDir   string
	store     backend.Config
	overwrite bool
	// systemNamespace is the server's.
	systemNamespace string
}

func newRestore(c *cli) *cobra.Command {
	f := restoreFlags{}
	cmd := &cobra.Command{
		Use:   "restore FILE --data-dir FOLDER",
		Short: "Restore a server's data from a backup while the server is stopped",
		Long: "Restores a server's data from a backup while the server is stopped: the store, in a file or in etcd,\n" +
			"whichever it came from, and the certificates and sealed keys in the data folder. Existing data is an\n" +
			"error, unless --overwrite is given; the command then moves a store's file aside. Zones that have\n" +
			"more than the backup delete nothing: what they own comes back, and what the global would remove is\n" +
			"held (causewayctl inspect sync).\n\n" +
			"The server trusts a backup like its own data: its roles, keys and certificates become the server's.\n" +
			"The command rejects a backup with files that no server keeps, or with resources that no server has\n" +
			"under such names and labels.\n\n" +
			"After an interrupted restore, the server does not start until the restore is repeated with\n" +
			"--overwrite.",
		Example: "  causewayctl restore global.backup --data-dir /var/lib/causeway\n" +
			"  causewayctl restore global.backup --data-dir /var/lib/causeway --store etcd --etcd-endpoints https://10.0.0.1:2379 --etcd-ca ca.crt",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(c.restore(cmd.Context(), args[0], &f))
		},
	}
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "the server's data `folder` (required)")
	cmd.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace existing data")
	addSystemNamespace(cmd, &f.systemNamespace)
	settings.AddStoreFlags(cmd.Flags(), &f.store, "")
	_ = cmd.MarkFlagRequired("data-dir")
	return cmd
}

func (c *cli) restore(ctx context.Context, path string, f *restoreFlags) error {
	b, err := readBackup(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.judge(b, f.systemNamespace); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	place := f.place(b)
	if err := server.MakeDataDir(f.dataDir, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := backend.Replaceable(ctx, place, f.overwrite); err != nil {
		return replacing(err)
	}
	// Files first: a store without its keys is useless.
	if err := b.Restore(f.dataDir, absolute(path), f.overwrite); err != nil {
		return replacing(err)
	}
	// Without its epoch, the store gets a new one when the server starts. The zones then know that what the store lacks
	// was not deleted.
	b.Resources = slices.DeleteFunc(b.Resources, func(r *resources.Resource) bool {
		return r.Type == resources.TypeSecret && r.Name == lineage.EpochSecret
	})
	aside, err := backend.Replace(ctx, place, b.Header.Revision+restoredGap, b.Resources, f.overwrite)
	if err == nil {
		err = archive.End(f.dataDir)
	}
	if err != nil {
		return replacing(err)
	}
	if aside != "" {
		_, _ = fmt.Fprintf(c.errOut, "the old store is now %s\n", aside)
	}
	done := restoredItem{Server: b.Header.Server, Revision: b.Header.Revision, Resources: len(b.Resources), Files: len(b.Files), Aside: aside}
	return c.printAnswer(done, func() error {
		_, err := fmt.Fprintf(c.out, "restored %d resources and %d files of the %s's revision %d\n", done.Resources,
			done.Files, done.Server, done.Revision)
		return err
	})
}

// restoredItem is what a restore has written, for programs.
type restoredItem struct {
	Server    string `json:"server"`
	Revision  uint64 `json:"revision"`
	Resources int    `json:"resources"`
	Files     int    `json:"files"`
	// Aside is where the old store is now, if there was one.
	Aside string `json:"aside,omitempty"`
}

// absolute returns a path that does not depend on the working directory, if there is one.
func absolute(path string) string {
	if found, err := filepath.Abs(path); err == nil {
		return found
	}
	return path
}

// maxTold bounds how many findings about a backup are printed.
const maxTold = 10

// judge refuses a backup with resources that no server has written, before anything is restored, and prints other
// problems of the resources to restore.
func (c *cli) judge(b *archive.Backup, systemNamespace string) error {
	findings, err := fsck.Contents(b.Resources, b.Header.Revision, systemNamespace)
	if err != nil {
		return err
	}
	for i := range findings[:min(len(findings), maxTold)] {
		f := &findings[i]
		_, _ = fmt.Fprintf(c.errOut, "%s %s: %s\n", f.Severity, f.Where, f.What)
	}
	if more := len(findings) - maxTold; more > 0 {
		_, _ = fmt.Fprintf(c.errOut, "and %d more, which causewayctl fsck prints afterwards\n", more)
	}
	return nil
}

// place returns the store that the server of the backup would open with these flags.
func (f *restoreFlags) place(b *archive.Backup) backend.Config {
	place := f.store
	place.Path = filepath.Join(f.dataDir, backend.File)
	place.Password = os.Getenv(backend.PasswordEnv)
	if place.Prefix == "" {
		place.Prefix = "/causeway/global"
		if b.Header.Zone != "" {
			place.Prefix = "/causeway/zones/" + b.Header.Zone
		}
	}
	return place
}

// replacing adds advice to an error about existing data at the destination.
func replacing(err error) error {
	if errors.Is(err, backend.ErrNotEmpty) || errors.Is(err, fs.ErrExist) {
		return &advised{err, "check that this is the right place; then add --overwrite"}
	}
	if errors.Is(err, bolt.ErrInUse) {
		return &advised{err, "stop the server that runs on this folder first"}
	}
	return err
}
