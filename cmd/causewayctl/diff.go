package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newDiff(c *cli) *cobra.Command {
	var filenames []string
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what apply would change",
		Long: "Compares the resources of files with those of the server, after the server has checked them as for apply. It\n" +
			"stores nothing, and leaves out labels that servers compute.\n\n" +
			"Exit status: 0 nothing would change, 1 something would, 2 a resource would be refused, or the result is unknown.",
		Example: "  causewayctl diff -f policies/\n" +
			"  causewayctl diff -f policies/ || causewayctl apply -f policies/",
		Args: cobra.NoArgs,
		RunE: c.question(func(ctx context.Context, client *api.Client, _ []string) error {
			docs, err := c.readDocuments(ctx, filenames)
			if err != nil {
				return err
			}
			return c.diff(ctx, client, docs)
		}),
	}
	addFilenameFlag(cmd, &filenames)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

// difference is the result of diff for one document.
type difference struct {
	api.ForecastItem
	// Diff is in unified form. It is empty if nothing would change.
	Diff string `json:"diff,omitempty"`
}

func (c *cli) diff(ctx context.Context, client *api.Client, docs []document) error {
	judged, err := dryRun(ctx, client, docs)
	if err != nil {
		return err
	}
	changed := false
	all := make([]difference, len(docs))
	for i, doc := range docs {
		c.waiting.say("comparing document %d of %d", i+1, len(docs))
		all[i].ForecastItem = judged.Results[i]
		if judged.Results[i].Result == api.ResultUnchanged {
			continue
		}
		changed = true
		if all[i].Diff, err = diffStored(ctx, client, doc); err != nil {
			return err
		}
	}
	err = c.printAnswer(c.withWarnings(map[string]any{"results": all}), func() error {
		for _, d := range all {
			fmt.Fprint(c.out, d.Diff)
		}
		return nil
	})
	if err == nil && changed {
		return errNo
	}
	return err
}

// diffStored compares a document with the resource that the server has under its key.
func diffStored(ctx context.Context, client *api.Client, doc document) (string, error) {
	var before []byte
	stored, err := client.Get(ctx, doc.resource.Key)
	switch {
	case api.IsNotFound(err) && !api.IsElsewhere(err):
	case err != nil:
		return "", aboutResource(doc.resource.Key, err)
	default:
		if before, err = written(stored); err != nil {
			return "", err
		}
	}
	after, err := written(doc.resource)
	if err != nil {
		return "", err
	}
	name := string(doc.resource.Type) + " " + place(doc.resource.Key)
	return string(diff.Diff(name+" on the server", before, name+" in "+doc.String(), after)), nil
}

// computed are the labels that servers set.
var computed = []string{
	resources.LabelMesh, resources.LabelOrigin, resources.LabelZone, resources.LabelDisplayName, resources.LabelPolicyRole,
	resources.LabelNamespace, resources.LabelEnv,
}

// written returns r as YAML, with only the parts that a user writes.
func written(r *resources.Resource) ([]byte, error) {
	own := r.Clone()
	own.Status, own.CreationTime, own.ModificationTime = nil, time.Time{}, time.Time{}
	own.Labels = maps.Clone(r.Labels)
	maps.DeleteFunc(own.Labels, func(key, _ string) bool { return slices.Contains(computed, key) })
	text, err := resources.EncodeYAML(resources.AppendUniversal(nil, own))
	if err != nil {
		return nil, err
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		key, _, _ := strings.Cut(line, ":")
		return slices.Contains([]string{"creationTime", "modificationTime", "kri"}, key)
	})
	return []byte(strings.Join(lines, "")), nil
}
