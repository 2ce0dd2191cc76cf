package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// getFlags are the flags of get.
type getFlags struct {
	scopeFlags
	allMeshes bool
	selectors []string
	selector  selector
	sortBy    string
	watch     bool
	// explicit shows the defaults that specs omit.
	explicit bool
}

func newGet(c *cli) *cobra.Command {
	flags := &getFlags{}
	cmd := &cobra.Command{
		Use:   "get TYPE [NAME...] | get KRI...",
		Short: "Show the resources of a type, or some of them by name",
		Long: "TYPE is a plural path (meshtimeouts), a type in any case (MeshTimeout, meshtimeout), or the short name in its\n" +
			"KRIs (mt). You can apply the output of -o yaml again. --explicit adds the defaults that a policy's spec leaves out:\n" +
			"empty references, the namespaces of references, a default as rules; the stored policy does not change.\n\n" +
			"-o name prints a KRI a line, which get, delete and edit take. -o jsonpath=EXPRESSION prints values of what -o json\n" +
			"prints: text, paths of RFC 9535 in braces, {\"\\n\"}, and {range PATH}...{end}. -o custom-columns=HEADER:PATH,...\n" +
			"prints a table. A selector is KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, separated by\n" +
			"commas.\n\n" +
			"A zone has in status.connection what the table of zones shows: its state, since when, and its version.\n\n" +
			"get replicas lists the globals that share a store: their version and age, how many zones each serves, the revision\n" +
			"that each has reached, which one leads, and whether it reaches the store. Of a zone or a global whose replicas choose\n" +
			"one by a Lease in Kubernetes, it lists that one and those that wait; -o wide says since when. Any other server lists\n" +
			"itself. Replicas are not resources: of the flags, only -o table, wide, yaml and json apply.\n\nTypes:\n" + typesText(),
		Example: "  causewayctl get meshtrafficpermissions\n" +
			"  causewayctl get mtp allow-frontend allow-metrics --mesh payments -o yaml\n" +
			"  causewayctl get dataplanes --all-meshes -l 'kuma.io/workload in (backend, frontend), !canary'\n" +
			"  causewayctl get kri_mtp_default_zone-1_backend-ns_by-owner_ -o yaml\n" +
			"  causewayctl get meshtimeout slow --namespace backend-ns --explicit -o yaml\n" +
			"  causewayctl get dataplanes -o jsonpath='{range .items[*]}{.name} {.networking.address}{\"\\n\"}{end}'\n" +
			"  causewayctl get mtp -o custom-columns=NAME:.name,TARGET:.spec.targetRef.kind --sort-by .creationTime\n" +
			"  causewayctl get mtp --watch --all-meshes\n" +
			"  causewayctl get zones -o wide\n" +
			"  causewayctl get replicas\n" +
			"  causewayctl get replicas -o wide --address https://global-2.example:5681",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeTypeAndName(&flags.scopeFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if len(flags.selectors) > 0 {
				if flags.selector, err = parseSelector(strings.Join(flags.selectors, ",")); err != nil {
					return usagef("--selector %w", err)
				}
			}
			if flags.watch {
				if err := c.checkWatch(flags, args); err != nil {
					return err
				}
				c.timeout = max(c.timeout, watchTimeout)
				return c.endlessOperation(func(ctx context.Context, client *api.Client, args []string) error {
					return c.watch(ctx, client, flags, args)
				})(cmd, args)
			}
			return c.operation(func(ctx context.Context, client *api.Client, args []string) error {
				return c.get(ctx, client, flags, args)
			})(cmd, args)
		},
	}
	flags.add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&flags.allMeshes, "all-meshes", "A", false, "list all meshes")
	f.BoolVar(&flags.explicit, "explicit", false, "show policies with all defaults that their specs leave out")
	f.StringArrayVarP(&flags.selectors, "selector", "l", nil,
		"list only resources with labels that the `selector` matches, such as 'team=a,tier in (web,api),!canary'; may be repeated")
	f.BoolVarP(&flags.watch, "watch", "w", false, "print what is there, and then each change until interrupted")
	f.StringVar(&flags.sortBy, "sort-by", "", "sort by the value of a `path`, such as .creationTime")
	cmd.MarkFlagsMutuallyExclusive("mesh", "all-meshes")
	return cmd
}

func (c *cli) get(ctx context.Context, client *api.Client, flags *getFlags, args []string) error {
	if slices.Contains(replicaNames(), args[0]) {
		if c.output.onlyOfGet() || flags.sortBy != "" || flags.selector != nil {
			return usagef("replicas are not resources: --selector, --sort-by and -o %s do not apply to them", c.output.String())
		}
		if len(args) > 2 {
			return usagef("get replicas takes one name at most")
		}
		return c.getReplicas(ctx, client, args)
	}
	read, err := flags.reads(args)
	if err != nil {
		return err
	}
	if read == nil {
		d, err := lookupType(args[0])
		if err != nil {
			return err
		}
		return c.getList(ctx, client, flags, d)
	}
	if flags.allMeshes || flags.selector != nil {
		return usagef("--all-meshes and --selector are for lists; leave out the names, or them")
	}
	var items []*item
	var failures []error
	for _, one := range read {
		it, err := one(ctx, client)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		items = append(items, it)
	}
	if len(read) == 1 {
		if len(items) == 1 {
			failures = append(failures, c.printOne(ctx, client, items[0]))
		}
	} else if len(items) > 0 {
		failures = append(failures, c.printList(ctx, client, flags, items))
	}
	if len(failures) == 1 {
		return failures[0]
	}
	return errors.Join(failures...)
}

// readFunc reads one resource that the command line names.
type readFunc func(context.Context, *api.Client) (*item, error)

// reads returns how to read each resource that the arguments name, or nothing if they name only a type.
func (f *getFlags) reads(args []string) ([]readFunc, error) {
	if !isKRI(args[0]) && len(args) == 1 {
		return nil, nil
	}
	var d *resources.Descriptor
	if !isKRI(args[0]) {
		var err error
		if d, err = lookupType(args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	var out []readFunc
	for _, name := range args {
		out = append(out, func(ctx context.Context, client *api.Client) (*item, error) {
			switch {
			case d == nil:
				it, err := fetchKRI(ctx, client, name)
				if err == nil && f.explicit {
					it, err = fetchExplicit(ctx, client, it.key())
				}
				return it, err
			case f.explicit:
				return fetchExplicit(ctx, client, f.key(d, name))
			}
			return fetchItem(ctx, client, f.key(d, name))
		})
	}
	return out, nil
}

func (c *cli) getList(ctx context.Context, client *api.Client, flags *getFlags, d *resources.Descriptor) error {
	q := flags.query(d)
	q.labels = flags.selector.equalities()
	if flags.allMeshes {
		q.mesh = ""
	}
	q.explicit = flags.explicit
	items, err := listItems(ctx, client, q)
	if err != nil {
		return err
	}
	if len(items) == 0 && d.StaysOnGlobal() && isZone(ctx, client) {
		return askGlobal("the " + d.Path)
	}
	items = slices.DeleteFunc(items, func(it *item) bool { return !flags.selector.matches(it.Labels) })
	if len(items) == 0 && (c.output == "" || c.output == formatTable || c.output == formatWide || c.output == formatName) {
		next := ""
		if d.Type == resources.TypeZone && flags.selector == nil {
			next = ": causewayctl zone create NAME adds one"
		}
		_, err := fmt.Fprintf(c.errOut, "no %s%s%s\n", d.Path, inMesh(d, q.mesh), next)
		return err
	}
	return c.printList(ctx, client, flags, items)
}

// isZone reports whether a zone responds; false if unknown.
func isZone(ctx context.Context, client *api.Client) bool {
	var index api.Index
	return client.JSON(ctx, api.Request{Path: "/"}, &index) == nil && index.Mode == api.ModeZone
}

func inMesh(d *resources.Descriptor, mesh string) string {
	if d.Scope == resources.ScopeMesh && mesh != "" {
		return " in mesh " + mesh
	}
	return ""
}
