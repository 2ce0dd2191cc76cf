package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// getFlags are the flags of get.
type getFlags struct {
	scopeFlags
	allMeshes bool
	labels    map[string]string
	// explicit shows the defaults that specs omit.
	explicit bool
}

func newGet(c *cli) *cobra.Command {
	flags := &getFlags{}
	cmd := &cobra.Command{
		Use:   "get TYPE [NAME] | get KRI",
		Short: "Show the resources of a type, or one of them",
		Long: "TYPE is a plural path (meshtimeouts), a type in any case (MeshTimeout, meshtimeout), or the short name in its\n" +
			"KRIs (mt). You can apply the output of -o yaml again. --explicit adds the defaults that a policy's spec leaves out:\n" +
			"empty references, the namespaces of references, a default as rules; the stored policy does not change.\n\n" +
			"get replicas lists the globals that share a store: their version and age, how many zones each serves, the revision\n" +
			"that each has reached, which one leads, and whether it reaches the store. A global on bolt lists itself. Replicas are\n" +
			"not resources: of the flags, only -o applies.\n\nTypes:\n" + typesText(),
		Example: "  causewayctl get meshtrafficpermissions\n" +
			"  causewayctl get mtp allow-frontend --mesh payments -o yaml\n" +
			"  causewayctl get dataplanes --all-meshes -l kuma.io/workload=backend\n" +
			"  causewayctl get kri_mtp_default_zone-1_backend-ns_by-owner_ -o yaml\n" +
			"  causewayctl get meshtimeout slow --namespace backend-ns --explicit -o yaml\n" +
			"  causewayctl get zones -o wide\n" +
			"  causewayctl get replicas\n" +
			"  causewayctl get replicas -o wide --address https://global-2.example:5681",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTypeAndName(&flags.scopeFlags),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if slices.Contains(replicaNames(), args[0]) {
				return c.getReplicas(ctx, client, args)
			}
			if len(args) == 1 && isKRI(args[0]) {
				it, err := fetchKRI(ctx, client, args[0])
				if err == nil && flags.explicit {
					it, err = fetchExplicit(ctx, client, it.key())
				}
				if err != nil {
					return err
				}
				return c.printOne(ctx, client, it)
			}
			d, err := lookupType(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return c.getOne(ctx, client, flags, flags.key(d, args[1]))
			}
			return c.getList(ctx, client, flags, d)
		}),
	}
	flags.add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&flags.allMeshes, "all-meshes", "A", false, "list all meshes")
	f.BoolVar(&flags.explicit, "explicit", false, "show policies with all defaults that their specs leave out")
	f.StringToStringVarP(&flags.labels, "label", "l", nil,
		"list only resources with the label `KEY=VALUE`; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("mesh", "all-meshes")
	return cmd
}

func (c *cli) getOne(ctx context.Context, client *api.Client, flags *getFlags, key resources.Key) error {
	if flags.allMeshes || len(flags.labels) > 0 {
		return usagef("--all-meshes and --label are for lists; leave out the name %s, or them", key.Name)
	}
	read := fetchItem
	if flags.explicit {
		read = fetchExplicit
	}
	it, err := read(ctx, client, key)
	if err != nil {
		return err
	}
	return c.printOne(ctx, client, it)
}

func (c *cli) printOne(ctx context.Context, client *api.Client, it *item) error {
	switch c.output {
	case formatJSON:
		return printJSON(c.out, it.whole)
	case formatYAML:
		return printYAML(c.out, it.whole)
	}
	d, ok := resources.Lookup(it.Type)
	if !ok {
		return fmt.Errorf("%w: %q; -o yaml shows it", resources.ErrUnknownType, it.Type)
	}
	return c.printItems(ctx, client, d, []*item{it})
}

func (c *cli) getList(ctx context.Context, client *api.Client, flags *getFlags, d *resources.Descriptor) error {
	q := flags.query(d)
	q.labels = flags.labels
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
	switch c.output {
	case formatJSON:
		return printJSON(c.out, map[string]any{"total": len(items), "items": wholes(items), "next": nil})
	case formatYAML:
		return printYAML(c.out, wholes(items)...)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintf(c.errOut, "no %s%s\n", d.Path, inMesh(d, q.mesh))
		return err
	}
	return c.printItems(ctx, client, d, items)
}

// isZone reports whether a zone answers; false if that is unknown.
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

func (c *cli) printItems(ctx context.Context, client *api.Client, d *resources.Descriptor, items []*item) error {
	switch q := (listQuery{descriptor: d, mesh: commonMesh(items)}); d.Type {
	case resources.TypeZone:
		return c.printZones(ctx, client, items, q)
	case resources.TypeDataplane:
		return c.printDataplanes(ctx, client, items, q)
	}
	return itemTable(d, items, c.output == formatWide, time.Now()).print(c.out)
}

// commonMesh returns the mesh of all items, or an empty string if they are in several.
func commonMesh(items []*item) string {
	mesh := items[0].Mesh
	for _, it := range items {
		if it.Mesh != mesh {
			return ""
		}
	}
	return mesh
}

func itemTable(d *resources.Descriptor, items []*item, wide bool, now time.Time) *table {
	t := &table{header: []string{"MESH", "NAMESPACE", "NAME"}}
	if d.Policy != nil {
		t.header = append(t.header, "TARGET", "ROLE")
	}
	t.header = append(t.header, "ORIGIN", "AGE")
	if wide {
		t.header = append(t.header, "DISPLAY NAME", "KRI", "LABELS")
	}
	for _, it := range items {
		row := []string{it.Mesh, it.Namespace, it.Name}
		if d.Policy != nil {
			row = append(row, targetText(it.Spec.TargetRef), it.Labels[resources.LabelPolicyRole])
		}
		row = append(row, it.origin(), age(it.CreationTime, now))
		if wide {
			row = append(row, it.displayName(), it.KRI, userLabels(it.Labels))
		}
		t.add(row...)
	}
	return t
}

// targetText returns a top-level targetRef as one word: `Dataplane{app=backend}#http`.
func targetText(ref *resources.TargetRef) string {
	if ref == nil {
		return resources.KindMesh
	}
	text := ref.KindOrMesh()
	if ref.Name != "" {
		text += "/" + ref.Name
	}
	if len(ref.Labels) > 0 {
		text += "{" + joinLabels(ref.Labels) + "}"
	}
	if ref.SectionName != "" {
		text += "#" + ref.SectionName
	}
	return text
}

// userLabels returns the labels that no other column shows.
func userLabels(labels map[string]string) string {
	own := maps.Clone(labels)
	for _, computed := range []string{resources.LabelMesh, resources.LabelOrigin, resources.LabelZone,
		resources.LabelDisplayName, resources.LabelPolicyRole} {
		delete(own, computed)
	}
	return joinLabels(own)
}

func joinLabels(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// age returns the age of t in its largest unit: `3d`.
func age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := now.Sub(t); {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
