package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

func (c *cli) printOne(ctx context.Context, client *api.Client, it *item) error {
	if err := c.addConnections(ctx, client, []*item{it}); err != nil {
		return err
	}
	switch {
	case c.output == formatJSON:
		return printJSON(c.out, it.whole)
	case c.output == formatYAML:
		return printYAML(c.out, it.whole)
	case c.output.expression(pathFormat) != "":
		return c.printTemplate(it.whole)
	case c.output.onlyOfGet():
		return c.printNamed([]*item{it})
	}
	d, ok := resources.Lookup(it.Type)
	if !ok {
		return fmt.Errorf("%w: %q; -o yaml shows it", resources.ErrUnknownType, it.Type)
	}
	return c.printItems(ctx, client, d, []*item{it})
}

// printTemplate prints v by the template of -o jsonpath=, and ends the last line.
func (c *cli) printTemplate(v any) error {
	parsed, err := parseTemplate(c.output.expression(pathFormat))
	if err != nil {
		return err
	}
	decoded, err := decodedJSON(v)
	if err != nil {
		return err
	}
	text, alone := parsed.alone(decoded)
	if !alone {
		var all strings.Builder
		parsed.write(&all, decoded)
		text = all.String()
	}
	_, err = fmt.Fprintln(c.out, strings.TrimSuffix(text, "\n"))
	return err
}

// printNamed prints items by -o name or custom-columns=.
func (c *cli) printNamed(items []*item) error {
	if c.output != formatName {
		columns, err := parseColumns(c.output.expression(columnsFormat))
		if err != nil {
			return err
		}
		return printColumns(c.out, columns, items)
	}
	for _, it := range items {
		if _, err := fmt.Fprintln(c.out, printing.Line(cmp.Or(it.KRI, it.key().String()))); err != nil {
			return err
		}
	}
	return nil
}

// printList prints items in the order of --sort-by.
func (c *cli) printList(ctx context.Context, client *api.Client, flags *getFlags, items []*item) error {
	if err := c.addConnections(ctx, client, items); err != nil {
		return err
	}
	if flags.sortBy != "" {
		if err := sortItems(items, flags.sortBy); err != nil {
			return err
		}
	}
	list := c.withWarnings(map[string]any{"total": len(items), "items": wholes(items), "next": nil})
	switch {
	case c.output == formatJSON:
		return printJSON(c.out, list)
	case c.output == formatYAML:
		return printYAML(c.out, wholes(items)...)
	case c.output.expression(pathFormat) != "":
		return c.printTemplate(list)
	case c.output.onlyOfGet():
		return c.printNamed(items)
	}
	d, ok := resources.Lookup(items[0].Type)
	if !ok {
		return fmt.Errorf("%w: %q; -o yaml shows it", resources.ErrUnknownType, items[0].Type)
	}
	for _, it := range items {
		if it.Type != d.Type { // of several KRIs
			return c.printKinds(ctx, client, items)
		}
	}
	return c.printItems(ctx, client, d, items)
}

// printKinds prints a table for each type of the items.
func (c *cli) printKinds(ctx context.Context, client *api.Client, items []*item) error {
	byType := map[resources.Type][]*item{}
	for _, it := range items {
		byType[it.Type] = append(byType[it.Type], it)
	}
	for i, t := range slices.Sorted(maps.Keys(byType)) {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		d, ok := resources.Lookup(t)
		if !ok {
			return fmt.Errorf("%w: %q; -o yaml shows it", resources.ErrUnknownType, t)
		}
		if err := c.printItems(ctx, client, d, byType[t]); err != nil {
			return err
		}
	}
	return nil
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

// clockSlack is how far the clocks of two machines may be apart without anybody noticing.
const clockSlack = 5 * time.Second

// age returns the age of t in its largest unit: `3d`.
func age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := now.Sub(t); {
	case d < -clockSlack: // one of the two clocks is wrong
		return stateUnknown
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
