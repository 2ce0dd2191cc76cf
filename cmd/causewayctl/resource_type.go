package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// lookupType finds the type that a user means: by its plural path, its name in any case, or the short name in its KRIs.
// Dashes do not count, so mesh-timeout is MeshTimeout.
func lookupType(arg string) (*resources.Descriptor, error) {
	want := plainType(arg)
	for _, d := range resources.Descriptors() {
		if slices.Contains(typeSpellings(d), want) {
			return d, nil
		}
	}
	if nearest := nearestType(want); nearest != "" {
		return nil, usagef("unknown type %q: did you mean %s?", arg, nearest)
	}
	return nil, usagef("unknown type %q; the types are\n%s", arg, typesText())
}

// typeSpellings returns the words for a type, normalized by plainType.
func typeSpellings(d *resources.Descriptor) []string {
	words := []string{plainType(d.Path), plainType(string(d.Type))}
	if d.AltPath != "" {
		words = append(words, plainType(d.AltPath))
	}
	if d.Short != "" {
		words = append(words, d.Short)
	}
	return words
}

func plainType(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }

// nearestType suggests the type whose spelling shares the longest prefix with the input, of at least five letters,
// because most begin with "mesh". If none does, it suggests the type with the smallest edit distance.
func nearestType(want string) string {
	best, length := "", 4
	for _, d := range resources.Descriptors() {
		for _, word := range typeSpellings(d) {
			if n := commonPrefix(word, want); n > length {
				best, length = d.Path, n
			}
		}
	}
	if best != "" {
		return best
	}
	distance := 3
	for _, d := range resources.Descriptors() {
		for _, word := range typeSpellings(d) {
			if n := distanceOf(word, want); n < distance && n < len(want)/2 {
				best, distance = d.Path, n
			}
		}
	}
	return best
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func typePaths() []string {
	var paths []string
	for _, d := range resources.Descriptors() {
		paths = append(paths, d.Path)
	}
	slices.Sort(paths)
	return paths
}

// typesText lists all types as text, several per line.
func typesText() string {
	var text strings.Builder
	column := 0
	for _, path := range typePaths() {
		if column > 0 && column+len(path) > 100 {
			text.WriteString("\n")
			column = 0
		} else if column > 0 {
			text.WriteString("  ")
		}
		text.WriteString(path)
		column += len(path) + 2
	}
	return text.String()
}

// completeTypeAndName completes TYPE from the registry and NAME from the server.
func (c *cli) completeTypeAndName(scope *scopeFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return withPrefix(append(typePaths(), replicaNames()[0]), prefix), cobra.ShellCompDirectiveNoFileComp
		case 1:
			d, err := lookupType(args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeNames(cmd, d, scope, prefix)
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// completeName completes the NAME of a resource of one type.
func (c *cli) completeName(t resources.Type, scope *scopeFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		d, ok := resources.Lookup(t)
		if !ok || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.completeNames(cmd, d, scope, prefix)
	}
}

func (c *cli) completeNames(cmd *cobra.Command, d *resources.Descriptor, scope *scopeFlags, prefix string) ([]string,
	cobra.ShellCompDirective) {
	var names []string
	err := c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := listItems(ctx, client, scope.query(d))
		for _, it := range items {
			names = append(names, it.Name)
		}
		return err
	})(cmd, nil)
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveError
	}
	return withPrefix(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

func withPrefix(words []string, prefix string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, prefix) })
}
