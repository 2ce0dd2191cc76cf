package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/server"
)

func newBackup(c *cli) *cobra.Command {
	return newGroup("backup", "Create and inspect backups of a server", newBackupCreate(c), newBackupInspect(c))
}

func newBackupCreate(c *cli) *cobra.Command {
	overwrite := false
	cmd := &cobra.Command{
		Use:   "create FILE | create -",
		Short: "Write everything that a server keeps to a file, at one revision, while it runs",
		Long: "Writes everything that a server keeps to a file, at one revision, while it runs: resources,\n" +
			"certificates, and keys, which stay sealed. It does not include the key that seals them (secrets.key,\n" +
			"or the passphrase): keep that elsewhere.\n\n" +
			"With -, the backup goes to standard output, and its summary to standard error.",
		Example: "  causewayctl backup create global-$(date +%F).backup\n" +
			"  kubectl -n causeway exec zone-1-causeway-zone-0 -- /usr/bin/causewayctl backup create - > zone-1.backup\n" +
			"  causewayctl backup create zone-1.backup --address http://127.0.0.1:15681",
		Args: cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			return c.createBackup(ctx, client, args[0], overwrite)
		}),
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace an existing file")
	return cmd
}

func (c *cli) createBackup(ctx context.Context, client *api.Client, path string, overwrite bool) error {
	if _, err := os.Lstat(path); path != stdout && !errors.Is(err, fs.ErrNotExist) && !overwrite {
		return &advised{fmt.Errorf("%s already exists", path), "choose another name, or add --overwrite"}
	}
	body, err := client.Do(ctx, api.Request{Method: http.MethodPost, Path: "/_backup"})
	if err != nil {
		return err
	}
	b, err := archive.Read(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read the server's response: %w", err)
	}
	if path == stdout {
		if _, err := c.raw.Write(body); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.errOut, "%d resources and %d files at revision %d\n", len(b.Resources), len(b.Files),
			b.Header.Revision)
		return err
	}
	if err := server.WriteFile(path, body, 0o600); err != nil {
		return err
	}
	return c.printAnswer(summaryOf(path, b), func() error {
		_, err := fmt.Fprintf(c.out, "%s: %d resources and %d files at revision %d\n", path, len(b.Resources),
			len(b.Files), b.Header.Revision)
		return err
	})
}

// stdout as a file name means standard output.
const stdout = "-"

// backupSummary is the output of backup inspect.
type backupSummary struct {
	File     string                 `json:"file"`
	Server   string                 `json:"server"`
	Zone     string                 `json:"zone,omitempty"`
	Version  string                 `json:"version"`
	Created  time.Time              `json:"created"`
	Revision uint64                 `json:"revision"`
	Types    map[resources.Type]int `json:"types"`
	Files    []string               `json:"files"`
}

func summaryOf(path string, b *archive.Backup) *backupSummary {
	s := &backupSummary{
		File: path, Server: b.Header.Server, Zone: b.Header.Zone, Version: b.Header.Version, Created: b.Header.Created,
		Revision: b.Header.Revision, Types: map[resources.Type]int{}, Files: []string{},
	}
	for _, r := range b.Resources {
		s.Types[r.Type]++
	}
	for _, f := range b.Files {
		s.Files = append(s.Files, f.Path)
	}
	return s
}

func newBackupInspect(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Check a backup and show its contents",
		Example: "  causewayctl backup inspect global.backup\n  causewayctl backup inspect global.backup -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := readBackup(args[0])
			if err != nil {
				return failed(err)
			}
			s := summaryOf(args[0], b)
			return failed(c.printAnswer(s, func() error { return c.printSummary(s) }))
		},
	}
}

func readBackup(path string) (*archive.Backup, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := archive.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func (c *cli) printSummary(s *backupSummary) error {
	of := s.Server
	if s.Zone != "" {
		of += " " + s.Zone
	}
	_, _ = fmt.Fprintf(c.out, "Backup of:  %s, version %s\nMade at:    %s\nRevision:   %d\n\n", of, s.Version,
		s.Created.Format(time.RFC3339), s.Revision)
	w := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "TYPE\tRESOURCES")
	for _, t := range slices.Sorted(maps.Keys(s.Types)) {
		_, _ = fmt.Fprintf(w, "%s\t%d\n", t, s.Types[t])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(s.Files) > 0 {
		_, _ = fmt.Fprintln(c.out, "\nFILES")
	}
	for _, f := range s.Files {
		if _, err := fmt.Fprintln(c.out, f); err != nil {
			return err
		}
	}
	return nil
}
