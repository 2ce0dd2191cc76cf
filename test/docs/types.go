package main

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/notes"
)

func typesPage(root string) (string, error) {
	read, err := notes.Read(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Types of resources\n\n%s"+`
The types stand in order of dependency: what others refer to comes first, and they are synced in this order. *Written on* says on
which server users may write a type; a zone that runs alone takes those of the global, too. Which way a type travels:

- *down*: what was written on the global goes to the zones.
- *up*: what was written in a zone goes to the global.
- *across*: what was written in one zone goes on to the other zones. Of policies, only those in role *producer* do
  ([who sees what](../concepts.md#who-sees-what)).

Documents have `+"`type`, `name`, `mesh` (types of a mesh), `namespace` and `labels`"+` beside their fields. The fields of most types stand under
`+"`spec`"+`; those of Mesh, Zone, Dataplane, ZoneIngress, MeshGateway and the insights stand beside the name.

Limits of every document: %d bytes and %d documents in one request, %d levels, %d values; %d labels for each resource; names of %d
characters (DNS-1123), of meshes, zones and namespaces %d; SPIFFE IDs of %d bytes. An unknown field is an error. `+"`[]`"+` in a path is an
item of a list, `+"`{}`"+` the value of a free key.

| type | written on | travels | in URLs | KRI |
| --- | --- | --- | --- | --- |
`, written, resources.MaxDocumentBytes, resources.MaxDocuments, resources.MaxDepth, resources.MaxValues, resources.MaxLabels,
		resources.MaxNameBytes, resources.MaxShortNameBytes, resources.MaxSpiffeIDBytes)
	for _, d := range resources.Descriptors() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | `%s` | %s |\n", d.Type, strings.ToLower(string(d.Type)),
			writtenOn(d.WrittenOn), travels(d), d.Path, quotedOr(d.Short))
	}
	for _, d := range resources.Descriptors() {
		describeType(&b, d, read)
	}
	return b.String(), nil
}

func quotedOr(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func writtenOn(s resources.Side) string {
	switch s {
	case resources.OnGlobal:
		return "global"
	case resources.OnZone:
		return "zone"
	case resources.Anywhere:
		return "global, zone"
	}
	return "by the servers only"
}

func travels(d *resources.Descriptor) string {
	var ways []string
	for way, goes := range [...]bool{d.GlobalToZone, d.ZoneToGlobal, d.AcrossZones} {
		if goes {
			ways = append(ways, [...]string{"down", "up", "across"}[way])
		}
	}
	if len(ways) == 0 {
		return "stays"
	}
	return strings.Join(ways, ", ")
}

func describeType(b *strings.Builder, d *resources.Descriptor, read *notes.Notes) {
	fmt.Fprintf(b, "\n## %s\n", d.Type)
	if text := read.Types[string(d.Type)]; text != "" {
		fmt.Fprintf(b, "\n%s\n", text)
	}
	of := "Belongs to a mesh"
	if d.Scope == resources.ScopeGlobal {
		of = "Belongs to no mesh"
	}
	fmt.Fprintf(b, "\n%s. Written on: %s. Travels: %s.%s\n", of, writtenOn(d.WrittenOn), travels(d), lists(d.Policy))
	fields := resources.Fields(d.Type)
	if len(fields) == 0 {
		return
	}
	b.WriteString("\n| field | is | |\n| --- | --- | --- |\n")
	for _, f := range fields {
		about := read.Fields[f.Origin]
		if f.Limits != "" {
			about = strings.TrimSpace(upperFirst(f.Limits) + ". " + about)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Path, f.Kind, strings.ReplaceAll(about, "|", `\|`))
	}
}

// upperFirst capitalises the first letter of s.
func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// lists describes the lists of a policy.
func lists(p *resources.PolicyShape) string {
	if p == nil {
		return ""
	}
	if p.Single {
		return " A policy with one `default` for the whole proxy."
	}
	var has []string
	for i, there := range [...]bool{p.To, p.From, p.Rules} {
		if there {
			has = append(has, [...]string{"`to`", "`from`", "`rules`"}[i])
		}
	}
	text := " A policy with " + strings.Join(has, ", ") + "."
	if p.Route {
		text += " Its items carry `rules` of matches and backends in place of a `default`."
	}
	return text
}
