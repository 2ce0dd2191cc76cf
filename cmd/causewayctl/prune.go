package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// pruneFlags make apply delete what is no longer in the files.
type pruneFlags struct {
	prune, yes bool
	text       string
	selector   selector
}

// check parses the selector. Without one, everything that is not in the files would be deleted.
func (f *pruneFlags) check() (err error) {
	if !f.prune {
		if f.text != "" || f.yes {
			return usagef("--selector and --yes are for --prune")
		}
		return nil
	}
	if f.text == "" {
		return usagef("--prune wants --selector: which resources these files are the whole of, such as -l app=shop")
	}
	if f.selector, err = parseSelector(f.text); err != nil {
		return usagef("--selector %w", err)
	}
	if !slices.ContainsFunc(f.selector, func(r requirement) bool { return !r.absent }) {
		return usagef("--selector %q: --prune wants a label that is there, such as app=shop: this selects everything else", f.text)
	}
	return nil
}

// unselected returns an error for the first document that the selector does not select: a later --prune would not
// recognise it.
func (f *pruneFlags) unselected(docs []document) error {
	for _, d := range docs {
		if !f.selector.matches(d.resource.Labels) {
			return fmt.Errorf("nothing was stored: %s: %s lacks the labels of --selector %s: give them to it, or apply it without --prune",
				d, d.resource.Key, f.text)
		}
	}
	return nil
}

// neverPruned are types whose resources others depend on.
var neverPruned = []resources.Type{resources.TypeMesh, resources.TypeZone}

// prunable returns resources that were written on the server, are selected and are not among the documents, policies
// first. It never returns copies, which other servers own.
func (f *pruneFlags) prunable(ctx context.Context, client *api.Client, docs []document) ([]resources.Key, error) {
	var index api.Index
	if err := client.JSON(ctx, api.Request{Path: "/"}, &index); err != nil {
		return nil, err
	}
	home := resources.Home{Zone: index.Zone}
	kept := map[resources.Key]bool{}
	for _, d := range docs {
		kept[d.resource.Key] = true
	}
	var out []resources.Key
	descriptors := resources.Descriptors()
	for _, d := range slices.Backward(descriptors) {
		if !home.MayWrite(d) || slices.Contains(neverPruned, d.Type) {
			continue
		}
		items, err := listItems(ctx, client, listQuery{descriptor: d, labels: f.selector.equalities()})
		if err != nil {
			return nil, fmt.Errorf("nothing was stored: what to prune is unknown: %s: %w", d.Type, err)
		}
		for _, it := range items {
			owned := home.Owns(&resources.Resource{Key: it.key(), Labels: it.Labels})
			if owned && f.selector.matches(it.Labels) && !kept[it.key()] {
				out = append(out, it.key())
			}
		}
	}
	return out, nil
}

// applyAndPrune is the RunE of apply --prune: it stores the documents and then deletes what they no longer contain, if
// the user agrees. The user's time does not count for a request's timeout.
func (c *cli) applyAndPrune(cmd *cobra.Command, args []string, f *pruneFlags, filenames []string, dry bool) error {
	var docs []document
	var keys []resources.Key
	if err := c.operation(func(ctx context.Context, client *api.Client, _ []string) (err error) {
		docs, keys, err = c.planPrune(ctx, client, f, filenames)
		if err != nil || !dry {
			return err
		}
		forecast, err := dryRun(ctx, client, docs)
		if err != nil {
			return err
		}
		return c.printForecast(docs, forecast)
	})(cmd, args); err != nil || dry {
		return err
	}
	if len(keys) > 0 && !f.yes {
		if err := c.agree(fmt.Sprintf("Apply %s and delete %d?", counted(len(docs), "document"), len(keys))); err != nil {
			return err
		}
	}
	return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
		result, err := applyDocuments(ctx, client, docs)
		if err != nil {
			return err
		}
		if err := c.printOutcomes(docs, result); err != nil {
			return err
		}
		if c.output == formatJSON || c.output == formatYAML {
			return c.deleteQuietly(ctx, client, keys)
		}
		return c.deleteAll(ctx, client, keys, true)
	})(cmd, args)
}

// planPrune reads the documents, and prints what would be deleted.
func (c *cli) planPrune(ctx context.Context, client *api.Client, f *pruneFlags, filenames []string) ([]document,
	[]resources.Key, error) {
	docs, err := c.readDocuments(ctx, filenames)
	if err != nil {
		return nil, nil, err
	}
	if err := f.unselected(docs); err != nil {
		return nil, nil, err
	}
	keys, err := f.prunable(ctx, client, docs)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		fmt.Fprintf(c.errOut, "would be deleted: %s\n", key)
	}
	return docs, keys, nil
}

// deleteQuietly is deleteAll for output formats for programs.
func (c *cli) deleteQuietly(ctx context.Context, client *api.Client, keys []resources.Key) error {
	for _, key := range keys {
		if err := client.Delete(ctx, key); err != nil && !api.IsNotFound(err) {
			return aboutResource(key, err)
		}
		fmt.Fprintf(c.errOut, "deleted: %s\n", key)
	}
	return nil
}
