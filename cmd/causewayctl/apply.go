package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
)

func newApply(c *cli) *cobra.Command {
	var filenames []string
	dry := dryRunFlag("none")
	pruning := &pruneFlags{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or update the resources of files, all of them or none",
		Long: "Sends all resources of all files as one request: if the server refuses one, it stores none. A file\n" +
			"contains one or more documents, YAML or JSON, in Universal form (type, mesh, name, labels, spec) or\n" +
			"in Kubernetes form. A file and a request contain at most 1000 documents and 4 MiB. Split larger\n" +
			"sets, and apply resources that others refer to first.\n\n" +
			"With --dry-run=server, the server stores nothing. It reports the outcome for each resource, a\n" +
			"policy's role, where it would be synchronized, and which proxies would change (-o wide names them).\n\n" +
			"With --prune, the files are the complete set of what --selector selects. After the rest is stored,\n" +
			"and once you agree or with --yes, resources that were written on this server, have these labels and\n" +
			"are in no file are deleted. --dry-run lists them. Copies, Meshes and Zones are never deleted.",
		Example: "  causewayctl apply -f permission.yaml\n" +
			"  causewayctl apply -f services/ -f policies/\n" +
			"  causewayctl apply -f policies/ --dry-run=server -o wide\n" +
			"  causewayctl apply -f policies/ --prune -l app=shop --dry-run=server\n" +
			"  causewayctl apply -f https://example.com/policies.yaml\n" +
			"  causewayctl get mtp allow-frontend -o yaml | sed s/frontend/checkout/ | causewayctl apply -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("apply takes files by -f: causewayctl apply -f %s", strings.Join(args, " -f "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pruning.check(); err != nil {
				return err
			}
			if pruning.prune {
				return c.applyAndPrune(cmd, args, pruning, filenames, dry == dryRunServer)
			}
			return c.applyFiles(filenames, &dry)(cmd, args)
		},
	}
	addFilenameFlag(cmd, &filenames)
	_ = cmd.MarkFlagRequired("filename")
	f := cmd.Flags()
	f.BoolVar(&pruning.prune, "prune", false, "delete what --selector selects and no file has")
	f.StringVarP(&pruning.text, "selector", "l", "", "with --prune: the labels of everything in the files, a `selector` as of get")
	f.BoolVar(&pruning.yes, "yes", false, "with --prune: do not ask before deleting")
	cmd.Flags().Var(&dry, "dry-run", "`server` reports what would happen and stores nothing; none stores")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = string(dryRunServer)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{string(dryRunServer), "none"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// applyFiles is apply without --prune.
func (c *cli) applyFiles(filenames []string, dry *dryRunFlag) func(*cobra.Command, []string) error {
	return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
		docs, err := c.readDocuments(ctx, filenames)
		if err != nil {
			return err
		}
		if *dry == dryRunServer {
			f, err := dryRun(ctx, client, docs)
			if err != nil {
				return err
			}
			return c.printForecast(docs, f)
		}
		result, err := applyDocuments(ctx, client, docs)
		if err != nil {
			return err
		}
		return c.printOutcomes(docs, result)
	})
}

// dryRunFlag is the value of --dry-run.
type dryRunFlag string

const dryRunServer dryRunFlag = "server"

// String implements pflag.Value.
func (f *dryRunFlag) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *dryRunFlag) Set(s string) error {
	if s != string(dryRunServer) && s != "none" {
		return errors.New("must be server or none")
	}
	*f = dryRunFlag(s)
	return nil
}

// Type implements pflag.Value.
func (f *dryRunFlag) Type() string { return "mode" }

// applyDocuments sends all documents as one request.
func applyDocuments(ctx context.Context, client *api.Client, docs []document) (*api.BatchResult, error) {
	result, err := client.Apply(ctx, resourcesOf(docs)...)
	if err != nil {
		return nil, traced(docs, err)
	}
	if len(result.Results) != len(docs) {
		return nil, fmt.Errorf("the server answered for %d of %d documents; causewayctl get shows what is stored",
			len(result.Results), len(docs))
	}
	return result, nil
}

// documentPrefix matches the server's prefix of a reason in a request with several documents. The command replaces it
// with file and document.
var documentPrefix = regexp.MustCompile(`^document \d+(?: \([^)]*\))?: `)

// traced names the file and document of each field that the server refused. A field without a document concerns all of
// them.
func traced(docs []document, err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) {
		return err
	}
	if answer.Status != http.StatusBadRequest || len(answer.InvalidParameters) == 0 {
		return becameOf(answer)
	}
	var lines []string
	for _, p := range answer.InvalidParameters {
		line := p.Field + ": " + p.Reason
		if n := p.Document; n >= 1 && n <= len(docs) {
			line = fmt.Sprintf("%s: %s: %s", docs[n-1], p.Field,
				strings.TrimPrefix(p.Reason, documentPrefix.FindString(p.Reason)))
		}
		lines = append(lines, line)
	}
	return refused(lines)
}

// becameOf returns an error that states whether a refused or failed request stored anything, as far as that is known.
func becameOf(answer *api.Error) error {
	known := answer.Outcome == api.OutcomeNothing || answer.Outcome == "" && answer.Status < http.StatusInternalServerError
	if known && strings.Contains(answer.Detail, "nothing was stored") {
		return fmt.Errorf("%s: %s", answer.Title, answer.Detail)
	}
	if known {
		return fmt.Errorf("nothing was stored: %s: %s", answer.Title, answer.Detail)
	}
	return &advised{
		fmt.Errorf("it is unknown whether anything was stored: %s: %s", answer.Title, answer.Detail),
		"causewayctl diff shows what is not stored; applying the same again is safe",
	}
}

func (c *cli) printOutcomes(docs []document, result *api.BatchResult) error {
	for i, o := range result.Results {
		for _, warning := range o.Warnings {
			fmt.Fprintf(c.errOut, "%s: warning: %s\n", docs[i], warning)
		}
	}
	switch c.output {
	case formatJSON:
		return printJSON(c.out, result)
	case formatYAML:
		return printYAML(c.out, result)
	}
	t := &table{}
	for i, o := range result.Results {
		row := []string{string(o.Type), place(docs[i].resource.Key), o.Result}
		if c.output == formatWide {
			row = append(row, o.KRI, docs[i].String())
		}
		t.add(row...)
	}
	return t.print(c.out)
}
