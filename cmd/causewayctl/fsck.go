package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/fsck"
	"github.com/causeway-mesh/causeway/server"
)

// fsckAnswer is the output of fsck.
type fsckAnswer struct {
	*fsck.Report
	Salvaged  int    `json:"salvaged,omitempty"`
	SalvageTo string `json:"salvageTo,omitempty"`
}

func newFsck(c *cli) *cobra.Command {
	repair, salvage, systemNamespace := false, "", ""
	cmd := &cobra.Command{
		Use:   "fsck FOLDER",
		Short: "Check a server's data folder while the server is stopped",
		Long: "Checks the data folder of a stopped global or zone: whether the store's file is whole, page by page and as the\n" +
			"server itself checks it; whether each resource is readable and consistent; certificates, the audit log and permissions.\n" +
			"Each finding includes what to do. It changes nothing without --repair, which repairs what is safe and keeps the originals.\n" +
			"--salvage writes a backup of all that can still be read of a damaged store, for causewayctl restore.\n\n" +
			"Exit status: 0 no problems, or all repaired; 1 problems; 2 unknown.",
		Example: "  causewayctl fsck /var/lib/causeway\n" +
			"  causewayctl fsck /var/lib/causeway --repair\n" +
			"  causewayctl fsck /var/lib/causeway --salvage rescued.backup",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := fsck.Check(cmd.Context(), filepath.Clean(args[0]), systemNamespace)
			if err != nil {
				return unanswered(failed(checking(err)))
			}
			answer := &fsckAnswer{Report: report}
			if salvage != "" {
				if err := answer.salvage(salvage); err != nil {
					return unanswered(failed(err))
				}
			}
			if repair {
				err = report.Repair()
			}
			printed := c.printAnswer(answer, func() error { return c.printFsck(answer) })
			if printed = c.said(printed); printed != nil {
				return unanswered(failed(printed))
			}
			if err != nil {
				return failed(err)
			}
			if report.Unrepaired() > 0 {
				return failed(errNo)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what is safe to repair; the original is kept beside it")
	addSystemNamespace(cmd, &systemNamespace)
	cmd.Flags().StringVar(&salvage, "salvage", "", "write a backup of all that can still be read to this `file`")
	return cmd
}

// addSystemNamespace adds the flag for the system namespace of the server that owns a data folder or a backup.
func addSystemNamespace(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "system-namespace", resources.DefaultSystemNamespace,
		"the `namespace` of the system's own resources that the server is started with")
}

// checking adds advice to the error for a folder that cannot be checked.
func checking(err error) error {
	if errors.Is(err, bolt.ErrInUse) {
		return &advised{err, "stop the server first; causewayctl backup create makes a backup of one that runs"}
	}
	return err
}

func (a *fsckAnswer) salvage(path string) error {
	var out bytes.Buffer
	h := archive.Header{Server: fsck.ServerOf(a.Dir), Version: server.Version(), Created: time.Now().UTC()}
	n, err := a.Salvage(&out, h, archive.Folders(h.Server)...)
	if err != nil {
		return err
	}
	a.Salvaged, a.SalvageTo = n, path
	return server.WriteFile(path, out.Bytes(), 0o600)
}

func (c *cli) printFsck(a *fsckAnswer) error {
	for i := range a.Findings {
		f := &a.Findings[i]
		state := string(f.Severity)
		if f.Repaired {
			state = "repaired"
		}
		fmt.Fprintf(c.out, "%-9s %s: %s\n          %s\n", state, f.Where, f.What, f.Do)
	}
	if a.SalvageTo != "" {
		fmt.Fprintf(c.out, "%s: %d resources could be read\n", a.SalvageTo, a.Salvaged)
	}
	_, err := fmt.Fprintf(c.out, "%s: %d resources at revision %d, %d files, %d findings, %d of them repaired\n",
		a.Dir, a.Resources, a.Revision, a.Files, len(a.Findings), len(a.Findings)-a.Unrepaired())
	return err
}
