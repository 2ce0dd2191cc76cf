package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

func newLint(c *cli) *cobra.Command {
	var filenames []string
	mesh, zone, strict := "", "", false
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Find permissions that may not do what their author expects",
		Long: "Checks the permissions of files (-f), without a server, or those that the server has. Some checks need\n" +
			"the Dataplanes and MeshTrusts: give their files as well, or ask the server.\n\nChecks:\n" + checksText() + "\n\n" +
			"Exit status: 0 nothing is wrong, 1 there are errors (with --strict, warnings too), 2 unknown.",
		Example: "  causewayctl lint -f policies/ -f services/ --strict\n" +
			"  causewayctl lint --mesh payments",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(filenames) > 0 {
				return c.offline(func(ctx context.Context) error {
					docs, err := c.readDocuments(ctx, filenames)
					if err != nil {
						return err
					}
					if err := meshOfFiles(mesh, resourcesOf(docs)); err != nil {
						return err
					}
					world := c.worldOf(docs, zone)
					return c.printFindings(world.Lint(mesh), strict)
				})(cmd, args)
			}
			return c.question(func(ctx context.Context, client *api.Client, _ []string) error {
				findings, err := c.fetchFindings(ctx, client, mesh)
				if err != nil {
					return err
				}
				return c.printFindings(findings, strict)
			})(cmd, args)
		},
	}
	addFilenameFlag(cmd, &filenames)
	f := cmd.Flags()
	f.StringVarP(&mesh, "mesh", "m", "", "only this `mesh`; all meshes by default")
	f.StringVar(&zone, "zone", "", "with -f: the `zone` of the resources that name none")
	f.BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

// meshOfFiles refuses a mesh that does not appear in the files.
func meshOfFiles(mesh string, list []*resources.Resource) error {
	var meshes []string
	for _, r := range list {
		if r.Type == resources.TypeMesh {
			meshes = append(meshes, r.Name)
		} else if r.Mesh != "" {
			meshes = append(meshes, r.Mesh)
		}
	}
	slices.Sort(meshes)
	if mesh == "" || slices.Contains(meshes, mesh) {
		return nil
	}
	return usagef("--mesh: no resource in the files belongs to a mesh %q%s", mesh,
		resources.Suggestion(mesh, slices.Compact(meshes)))
}

func checksText() string {
	var lines []string
	for _, check := range explain.Checks() {
		lines = append(lines, fmt.Sprintf("  %-18s%s", check.Name, check.Text))
	}
	return strings.Join(lines, "\n")
}

// fetchFindings fetches the findings of one mesh, or of each of the server's meshes.
func (c *cli) fetchFindings(ctx context.Context, client *api.Client, mesh string) ([]explain.Finding, error) {
	meshes := []string{mesh}
	if mesh == "" {
		d, _ := resources.Lookup(resources.TypeMesh)
		items, err := listItems(ctx, client, listQuery{descriptor: d})
		if err != nil {
			return nil, err
		}
		meshes = nil
		for _, it := range items {
			meshes = append(meshes, it.Name)
		}
	}
	var all []explain.Finding
	for _, name := range meshes {
		c.waiting.say("checking mesh %s", name)
		var answer inspect.Findings
		if err := client.JSON(ctx, api.Request{Path: "/meshes/" + url.PathEscape(name) + "/_lint"}, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Findings...)
	}
	return all, nil
}

// printFindings prints the findings by policy. Errors are the answer no.
func (c *cli) printFindings(findings []explain.Finding, strict bool) error {
	err := c.printAnswer(c.withWarnings(map[string]any{"findings": append([]explain.Finding{}, findings...)}), func() error {
		last := ""
		for _, f := range findings {
			if f.KRI != last {
				fmt.Fprintln(c.out, f.KRI)
				last = f.KRI
			}
			fmt.Fprintf(c.out, "  %-7s  %s: %s\n", f.Severity, f.Check, f.Message)
			if f.Field != "" {
				fmt.Fprintf(c.out, "           at %s\n", f.Field)
			}
			if f.Advice != "" {
				fmt.Fprintf(c.out, "           %s\n", f.Advice)
			}
		}
		_, err := fmt.Fprintln(c.errOut, findingsCount(findings))
		return err
	})
	bad := func(f explain.Finding) bool { return strict || f.Severity == explain.Error }
	if err == nil && slices.ContainsFunc(findings, bad) {
		return errNo
	}
	return err
}

func findingsCount(findings []explain.Finding) string {
	errors := 0
	for _, f := range findings {
		if f.Severity == explain.Error {
			errors++
		}
	}
	return counted(errors, "error") + ", " + counted(len(findings)-errors, "warning")
}
