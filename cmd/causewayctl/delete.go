package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newDelete(c *cli) *cobra.Command {
	scope, ignoreMissing := &scopeFlags{}, false
	var filenames []string
	cmd := &cobra.Command{
		Use:   "delete TYPE NAME | delete KRI | delete -f FILE",
		Short: "Delete a resource, or all resources that files name",
		Long:  "With -f, it deletes resources in the reverse order of the files; their specs do not matter.",
		Example: "  causewayctl delete meshtrafficpermission allow-frontend\n" +
			"  causewayctl delete -f policies/ --ignore-not-found",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(filenames) > 0 {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) == 2 || len(args) == 1 && isKRI(args[0]) {
				return nil
			}
			return errors.New("name what to delete: TYPE NAME, KRI, or -f FILE")
		},
		ValidArgsFunction: c.completeTypeAndName(scope),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if len(args) == 1 {
				it, err := fetchKRI(ctx, client, args[0])
				if err != nil {
					return err
				}
				return c.deleteAll(ctx, client, []resources.Key{it.key()}, ignoreMissing)
			}
			keys, err := c.keysToDelete(ctx, scope, args, filenames)
			if err != nil {
				return err
			}
			return c.deleteAll(ctx, client, keys, ignoreMissing)
		}),
	}
	scope.add(cmd)
	addFilenameFlag(cmd, &filenames)
	cmd.Flags().BoolVar(&ignoreMissing, "ignore-not-found", false, "ignore resources that do not exist")
	return cmd
}

func (c *cli) keysToDelete(ctx context.Context, scope *scopeFlags, args, filenames []string) ([]resources.Key, error) {
	if len(filenames) == 0 {
		d, err := lookupType(args[0])
		if err != nil {
			return nil, err
		}
		return []resources.Key{scope.key(d, args[1])}, nil
	}
	docs, err := c.readDocuments(ctx, filenames)
	if err != nil {
		return nil, err
	}
	var keys []resources.Key
	for _, doc := range slices.Backward(docs) {
		keys = append(keys, doc.resource.Key)
	}
	return keys, nil
}

// deleteAll continues after a failure, so that one resource that cannot be deleted does not block the others.
func (c *cli) deleteAll(ctx context.Context, client *api.Client, keys []resources.Key, ignoreMissing bool) error {
	var failures []error
	t, done := &table{}, doneItems{[]api.BatchedItem{}}
	add := func(key resources.Key, result string) {
		t.add(string(key.Type), place(key), result)
		done.Results = append(done.Results, doneWith(key, result))
	}
	for _, key := range keys {
		err := client.Delete(ctx, key)
		switch {
		case err == nil:
			add(key, resultDeleted)
		case ignoreMissing && api.IsNotFound(err):
			add(key, resultNotFound)
		default:
			failures = append(failures, aboutResource(key, err))
		}
	}
	return errors.Join(append(failures, c.printAnswer(done, func() error { return t.print(c.out) }))...)
}

// place returns a key without its type: `default/backend-ns/slow`.
func place(k resources.Key) string {
	k.Type = ""
	return k.String()[1:]
}
